import { createSecureContext } from 'node:tls'
import type { TlsOptions } from './certificate.ts'
import { systemClock } from './clock.ts'
import { ConfigError, type Settings } from './config.ts'
import { giveBackMemory } from './give-back.ts'
import { createLog, type Log } from './log.ts'
import { Counter, createMetrics, type Registry, serveMetrics } from './metrics.ts'
import { becomeUser, toBecome } from './own-user.ts'
import { writePrivately } from './private-files.ts'
import type { HasRun, ToRun } from './program-runner.ts'
import { EXIT_REFUSED, StartRefused } from './start-refused.ts'
import { traceTypeScript } from './typescript-stacks.ts'
import type { Environment } from './variables.ts'
import type { Works } from './works.ts'

export { StartRefused }

export interface ProcessContext<C extends Settings = Settings> {
  readonly config: C
  readonly log: Log
  readonly metrics: Registry
  /** The user that the process becomes when `start` resolves; null to stay the same user. */
  readonly user: number | null
}

export interface RunningProcess {
  /**
   * For a process with long-running work. After `begin` it accepts no new work; `done` resolves after the last work.
   */
  readonly drain?: { begin(): Promise<void>; readonly done: Promise<void> }
  /** For a process whose work depends on others: whether it does it now, by part. */
  works?(): Promise<Works>
  /** For a process that serves TLS: handshakes from now on use these certificates. */
  renewTls?(tls: TlsOptions): void
  /** Stops in order: finishes or hands back everything that the process is responsible for. */
  stop(): Promise<void>
}

const STOP_LIMIT_MS = 8000

/**
 * The main function of a platform process. Reads the configuration, starts, notifies the supervisor, and stops in order
 * on SIGTERM, SIGINT or the loss of the supervisor. `load` decides whether the process holds the master key. Unexpected
 * exceptions are logged and counted as bugs but do not end the process, because that would end its calls.
 */
export async function runProcess<C extends Settings>(
  name: string,
  load: (env: Environment) => C,
  start: (context: ProcessContext<C>) => Promise<RunningProcess>,
): Promise<void> {
  traceTypeScript()
  writePrivately()
  let log: Log | undefined
  const starting = leaveWithSupervisor()
  try {
    const config = load(process.env)
    log = createLog(name, config)
    const metrics = createMetrics(name)
    countBugs(metrics, log)
    let running: RunningProcess | null = null
    const works = async (): Promise<Works> => (await running?.works?.()) ?? {}
    const served = await serveMetrics(config.run_dir, name, metrics, works)
    const user = toBecome(process.argv)
    running = await start({ config, log, metrics, user })
    if (user !== null) {
      // Makes Node.js read this file now, not at the first TLS connection, when the new user may not read it.
      if (process.env['NODE_EXTRA_CA_CERTS']) createSecureContext()
      // From here on the process needs no root: its ports, code and keys are open.
      becomeUser(user)
    }
    const stopping = stopOnSignal(running, log, () => served.close())
    starting.over()
    giveBackMemory(systemClock)
    drainOnWord(running, stopping)
    renewOnWord(running, log)
    process.send?.({ ready: true } satisfies Word)
  } catch (error) {
    if (error instanceof StartRefused || error instanceof ConfigError) {
      await tell(error.message)
      process.exit(EXIT_REFUSED)
    }
    if (!log) throw error
    log.fatal({ err: error }, 'the process could not start')
    process.exit(1)
  }
}

/** Reports why the process refuses to start: to the supervisor, which prints it once, or else to stderr. */
function tell(sentence: string): Promise<void> {
  return new Promise(resolve => {
    if (process.send) process.send({ refused: sentence } satisfies Word, () => resolve())
    else process.stderr.write(`strowger: ${sentence}\n`, () => resolve())
  })
}

/** Exits at once if the supervisor goes away during the start, when there is no work yet to end in order. */
function leaveWithSupervisor(): { over(): void } {
  const leave = (): void => process.exit(1)
  if (process.send && !process.connected) leave()
  process.on('disconnect', leave)
  return { over: () => void process.off('disconnect', leave) }
}

function countBugs(metrics: Registry, log: Log): void {
  const bugs = new Counter({
    name: 'strowger_unexpected_exceptions_total',
    help: 'Exceptions that nothing expected; each is a bug',
    registers: [metrics],
  })
  const note = (err: unknown): void => {
    bugs.inc()
    log.error({ err }, 'unexpected exception')
  }
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
}

/** Returns whether the process is stopping. */
function stopOnSignal(running: RunningProcess, log: Log, finished: () => void): () => boolean {
  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    setTimeout(() => {
      log.error('did not stop in time')
      process.exit(1)
    }, STOP_LIMIT_MS).unref()
    running.stop().then(
      () => {
        finished()
        process.exit(0)
      },
      err => {
        log.error({ err }, 'the process could not shut down cleanly')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('disconnect', stop)
  return () => stopping
}

/** The messages between the supervisor and a process, in both directions. */
export interface Word {
  readonly ready?: true
  readonly refused?: string
  /** To the process: accept no new work. */
  readonly drain?: true
  /** From the process: it has drained, on anybody's request, and its last work has ended. */
  readonly drained?: true
  /** To the process: the operator has renewed certificates. It may not be able to read the files any more. */
  readonly renewed?: TlsOptions
  /** From the process: kill the program with this id. */
  readonly to_stop?: number
  /** From the process: run a program for me. */
  readonly to_run?: ToRun
  /** To the process: its program has ended. */
  readonly has_run?: HasRun
  /** From a process that sleeps at times: it can take the socket whose datagrams woke it. */
  readonly asks_for_door?: true
  /** To such a process: the socket comes with this message. */
  readonly door?: true
  /** To such a process: what the socket received before. */
  readonly datagrams?: readonly Datagram[]
  /** From such a process: it has had no work for a while. */
  readonly sleeps?: true
}

/** A datagram that waited for its process; `bytes` is in Base64. */
export interface Datagram {
  readonly bytes: string
  readonly address: string
  readonly family: 'IPv4' | 'IPv6'
  readonly port: number
}

function drainOnWord({ drain }: RunningProcess, stopping: () => boolean): void {
  if (!drain) return
  process.on('message', (word: Word) => {
    if (word.drain) void drain.begin()
  })
  // A process that drains because it was told to stop is no reason to stop the platform: its successor goes on.
  void drain.done.then(() => {
    if (!stopping()) process.send?.({ drained: true } satisfies Word)
  })
}

function renewOnWord(running: RunningProcess, log: Log): void {
  if (!running.renewTls) return
  process.on('message', ({ renewed }: Word) => {
    if (!renewed) return
    running.renewTls?.(renewed)
    log.info('the renewed certificates are in use')
  })
}

/** Turns the error of a port that cannot be bound into one sentence that names the port and its variable. */
export function portTaken(error: unknown, port: number, variable: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return new StartRefused(`port ${port} is already in use: free it or set ${variable}`)
  if (code === 'EACCES') return new StartRefused(`port ${port} needs more rights: choose another with ${variable}`)
  return error
}
