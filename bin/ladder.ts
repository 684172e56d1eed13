import { writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { pcapng } from '../core/domain/ladder/pcapng.ts'
import { renderLadder } from '../core/domain/ladder/render.ts'
import { ladderUnavailable } from '../core/domain/ladder/unavailable.ts'
import type { Config } from '../core/runtime/config.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { ladderOf } from '../core/state/calls/ladder.ts'
import type { Db } from '../core/state/index.ts'
import { browse, hasScreen } from './screen/browse.ts'
import type { View } from './screen/browsing.ts'
import { wholeCallSid } from './short-ids.ts'
import { withState } from './state.ts'
import { give, tell, terminal } from './terminal.ts'

interface Options {
  readonly full?: true
  readonly print?: true
  readonly json?: true
  readonly pcap?: string
}

export const ladderCommand = (): Command =>
  new Command('ladder')
    .argument('<sid>', 'CallSid (CA…), or its first characters')
    .option('--full', 'print the messages themselves, too')
    .option('--print', 'print it, on a terminal too')
    .option('--json', 'as JSON')
    .option('--pcap <file>', 'write them as a capture for Wireshark, tshark or sngrep')
    .action((typed: string, options: Options) =>
      withState(async ({ db }, config) => {
        const sid = await wholeCallSid(db, typed)
        const messages = await messagesOf(db, config, sid)
        if (options.pcap !== undefined) {
          const own = config.second ? [config.host, config.second.host] : [config.host]
          writeFileSync(options.pcap, pcapng(messages, own, `Call ${sid}. Secrets are masked.`), { mode: 0o600 })
          return
        }
        if (options.json) return give(`${JSON.stringify(messages)}\n`)
        if (!options.full && !options.print && hasScreen()) return browseLadder(sid, messages)
        tell(renderLadder(messages, terminal().columns))
        if (options.full) for (const message of messages) tell(`\n${message.text.trimEnd()}\n`)
      }),
    )

type Message = NonNullable<Awaited<ReturnType<typeof ladderOf>>>[number]

/** @throws StartRefused for an unknown call, and where another program has the messages */
async function messagesOf(db: Db, { drachtio }: Config, sid: string): Promise<readonly Message[]> {
  const messages = await ladderOf(db, sid, 'operator')
  if (messages === null) throw new StartRefused(`there is no call ${sid}`)
  const unavailable = ladderUnavailable(drachtio !== null, messages)
  if (unavailable !== null) throw new StartRefused(unavailable)
  return messages
}

/** The ladder of a call as text for a screen of this width, for lists in which a person opens a call. */
export async function ladderText(db: Db, config: Config, sid: string, columns: number): Promise<string> {
  try {
    const messages = await messagesOf(db, config, sid)
    const texts = messages.map(({ text }) => `\n${text.trimEnd()}\n`)
    return `${sid}\n\n${renderLadder(messages, columns)}${texts.join('')}`
  } catch (error) {
    if (error instanceof StartRefused) return error.message
    throw error
  }
}

/** A message with its line of the ladder. */
interface Rung {
  readonly message: Message
  readonly at: number
  readonly line: string
}

function browseLadder(sid: string, messages: readonly Message[]): Promise<void> {
  const view = (): View<Rung> => {
    // The list indents its lines by two.
    const [head = '', ...lines] = renderLadder(messages, (terminal().columns ?? 80) - 2)
      .trimEnd()
      .split('\n')
    return {
      head: [sid],
      rows: messages.map((message, at) => ({ message, at, line: lines[at] ?? '' })),
      columns: [{ title: head, text: ({ line }) => line, least: 20 }],
      key: ({ at }) => String(at),
    }
  }
  const opened = async ({ message }: Rung): Promise<string> => message.text
  return browse({ look: async () => view(), every_ms: null, opened })
}
