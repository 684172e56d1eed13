import type { Command, Option } from 'commander'
import { programFor } from '../../bin/commands.ts'
import { orSayWhy } from '../../bin/say.ts'
import { onState } from '../../bin/state.ts'
import { type Terminal, withTerminal } from '../../bin/terminal.ts'
import type { State } from '../../core/state/index.ts'
import type { Ended } from './child.ts'

interface Surroundings {
  /** The settings, among them STROWGER_DATA. */
  readonly env: Readonly<Record<string, string>>
  /** The open state of that folder; without one each command opens it. */
  readonly state?: State
  /** Width of the terminal; null: a program reads what is printed. */
  readonly columns?: number | null
  readonly colour?: boolean
  readonly input?: string
  /** The Unix user who runs it. */
  readonly user?: string
}

class Left extends Error {}

/** Runs the function of a command in this process, as `bin/strowger` runs it in its own. */
export async function runCommand(words: readonly string[], around: Surroundings): Promise<Ended> {
  let code = 0
  let stdout = ''
  let stderr = ''
  const terminal: Terminal = {
    env: around.env,
    user: around.user ?? 'operator',
    columns: around.columns ?? null,
    colour: around.colour ?? false,
    out(chunk, done) {
      stdout += Buffer.from(chunk as Uint8Array).toString('utf8')
      done?.()
    },
    err(text) {
      stderr += text
    },
    input: async () => around.input ?? '',
    fail() {
      code = 1
    },
    leave() {
      throw new Left()
    },
  }
  const run = () =>
    withTerminal(terminal, async () => {
      const program = await programFor(words)
      endHere(program)
      await orSayWhy(() => program.parseAsync([...words], { from: 'user' }))
    })
  try {
    await (around.state ? onState(around.state, run) : run())
  } catch (error) {
    if (error instanceof Left) code = 1
    else if (error instanceof Error && 'exitCode' in error) code = Number(error.exitCode)
    else throw error
  }
  return { code, stdout, stderr }
}

/** Commander ends the process after help and faults, unless it is told otherwise. */
function endHere(command: Command): void {
  command.exitOverride()
  for (const part of command.commands) endHere(part)
}

/** What a group has an option of its own for, beside those that all have. */
const isOwn = ({ long }: Option): boolean => long !== '--json'

/** Every command that does something itself, with the words that name it: a group that does so after its commands. */
export async function allCommands(): Promise<{ readonly words: readonly string[]; readonly command: Command }[]> {
  const below = (command: Command, words: readonly string[]): { words: readonly string[]; command: Command }[] => [
    ...command.commands.flatMap(part => below(part, [...words, part.name()])),
    ...(words.length > 0 && (command.commands.length === 0 || command.options.some(isOwn)) ? [{ words, command }] : []),
  ]
  return below(await programFor(['completion']), [])
}

/** The help of a command on a screen of this width. */
export const helpOf = async (command: Command, columns: number): Promise<string> => {
  let help = ''
  const out = (chunk: string | Uint8Array): void => {
    help += chunk
  }
  const unused = (): never => {
    throw new Error('help reads and ends nothing')
  }
  const terminal = {
    env: {},
    user: '',
    columns,
    colour: false,
    out,
    err: out,
    input: unused,
    fail: unused,
    leave: unused,
  }
  await withTerminal(terminal, async () => command.outputHelp())
  return help
}
