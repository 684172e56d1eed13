import { POCKETSPHINX } from '../domain/speech/engines.ts'
import { type BareEnd, type BareRun, runBy, runIn } from './bare-child.ts'
import type { Word } from './lifecycle.ts'

// A process that handles strangers' packets may start no program (bin/confinement.ts) and cannot change users. So it
// asks the supervisor, which runs them with fewer rights: as a separate user where it is root, which owns no files and
// cannot signal other processes. The channel carries JSON, because the supervisor must not decode anything else from
// such a process.

/** Asks for a program. */
export interface ToRun {
  readonly id: number
  readonly program: string
  readonly args: readonly string[]
  readonly run: BareRun
}

/** How a program ended; `stdout` is in Base64. */
export interface HasRun {
  readonly id: number
  readonly end: { readonly ok: true; readonly stdout: string } | Exclude<BareEnd, { readonly ok: true }>
}

/** The only programs that the supervisor runs for another process. */
const PROGRAMS: readonly unknown[] = ['espeak-ng', POCKETSPHINX]
/** The most programs that it runs at once for one process. */
const AT_ONCE = 16
const MOST = { bytes: 64 * 1024 * 1024, ms: 60_000, files: 4 }
/** Programs have no folder: one that root removes after another user could lead root astray by links. */
const NO_FOLDER = '/nonexistent'

/** Makes this process run programs by its supervisor from now on; without one, it runs them itself. */
export function runProgramsBySupervisor(): void {
  if (!process.connected) return
  const waiting = new Map<number, (end: BareEnd) => void>()
  let next = 1
  process.on('message', ({ has_run }: Word) => {
    if (!has_run) return
    const { id, end } = has_run
    waiting.get(id)?.(end.ok ? { ok: true, stdout: Buffer.from(end.stdout, 'base64') } : end)
    waiting.delete(id)
  })
  runBy(
    (program, args, run, stop) =>
      new Promise(resolve => {
        const id = next++
        const kill = () => process.send?.({ to_stop: id } satisfies Word)
        waiting.set(id, end => {
          stop?.removeEventListener('abort', kill)
          resolve(end)
        })
        process.send?.({ to_run: { id, program, args, run } } satisfies Word)
        stop?.addEventListener('abort', kill)
        if (stop?.aborted) kill()
      }),
  )
}

interface ProgramsRunner {
  run(asked: ToRun): Promise<HasRun>
  /** Kills a program that runs. */
  stop(id: number): void
}

/** Returns what runs the programs that one process asks for. `as` is the command that takes rights from them. */
export function programsRunner(as: readonly string[]): ProgramsRunner {
  const running = new Map<object, { readonly id: number; readonly stop: AbortController }>()
  return {
    async run(asked) {
      const { id, program, args, run } = asked
      const refused = (detail: string): HasRun => ({ id, end: { ok: false, too_long: false, detail } })
      if (!PROGRAMS.includes(program)) return refused(`${program} is not run for other processes`)
      if (running.size >= AT_ONCE) return refused('too many programs run')
      const stop = new AbortController()
      running.set(asked, { id, stop })
      try {
        const limits = {
          limit_ms: Math.min(run.limit_ms ?? MOST.ms, MOST.ms),
          max_bytes: Math.min(run.max_bytes, MOST.bytes),
          files: run.files?.slice(0, MOST.files) ?? [],
        }
        const [command = program, ...words] = [...as, program, ...args]
        const end = await runIn(NO_FOLDER, command, words, { ...run, ...limits }, stop.signal)
        return { id, end: end.ok ? { ok: true, stdout: end.stdout.toString('base64') } : end }
      } catch (error) {
        // The request does not have the form of one.
        return refused((error as Error).message)
      } finally {
        running.delete(asked)
      }
    },
    stop(id) {
      for (const program of running.values()) if (program.id === id) program.stop.abort()
    },
  }
}
