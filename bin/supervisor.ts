import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EXIT_REFUSED, StartRefused, type Word } from '../core/runtime/lifecycle.ts'
import type { Log } from '../core/runtime/log.ts'
import { becoming } from '../core/runtime/own-user.ts'
import type { Fewer } from './least-privilege.ts'
import { writePid } from './pid-file.ts'

/** One process to keep running. `script` is below build/; `env` is its whole environment. */
export interface Plan {
  readonly name: string
  readonly script: string
  readonly env: Readonly<Record<string, string>>
  /** How it is started with fewer rights than ours; null: it has all of them. */
  readonly fewer: Fewer | null
  /** Its work lasts: it is asked to drain before any process stops. When it has drained by itself, all are stopped. */
  readonly drains?: true
}

interface Supervisor {
  /** Stops all in order, after a drain; when called again, without waiting for it any longer. */
  stop(): void
}

interface SuperviseOptions {
  readonly run_dir: string
  readonly log: Log
  /** How long a drain may take when the platform is told to stop. */
  readonly drain_ms: number
  /** Called when all have ended. */
  readonly stopped: () => void
}

const BACK_OFF = { first_ms: 100, most_ms: 3000, forgotten_after_ms: 20_000 }
/** Tells a process that hangs from one on a machine with much else to do: all start within a second or two. */
const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 10_000
const build = join(dirname(fileURLToPath(import.meta.url)), '..')

/**
 * Starts the plans in order, each when the one before is ready, then keeps them running: a process that dies is started
 * again with back-off, the others do not notice. Rejects with StartRefused when one of them refuses to start.
 * After `stop`, and when one has drained by itself, processes end in the reverse order, so that the ones that need
 * others end first.
 */
export async function supervise(plans: readonly Plan[], options: SuperviseOptions): Promise<Supervisor> {
  const { run_dir, log, drain_ms, stopped } = options
  const hurry = new AbortController()
  let stopping = false
  const stop = (): void => {
    if (stopping) {
      hurry.abort()
      return
    }
    stopping = true
    // Not by AbortSignal.timeout within AbortSignal.any: Node 20 collects it as garbage, and it never comes.
    setTimeout(() => hurry.abort(), drain_ms)
    void Promise.all(kept.map(one => one.drain(hurry.signal)))
      .then(() => stopAll(kept))
      .then(() => {
        stopped()
        process.exit(0)
      })
  }
  const kept = plans.map(plan => new KeptProcess(plan, join(run_dir, `${plan.name}.pid`), log))
  for (const one of kept) void one.drained.then(stop)
  try {
    for (const one of kept) await one.start()
  } catch (error) {
    // Who drains because it is stopped has nothing to tell: the exit code is that of the refusal.
    stopping = true
    await stopAll(kept)
    throw error
  }
  return { stop }
}

async function stopAll(kept: readonly KeptProcess[]): Promise<void> {
  for (const one of [...kept].reverse()) await one.stop()
}

class KeptProcess {
  readonly #plan: Plan
  readonly #pid_file: string
  readonly #log: Log
  /** Resolves when it has drained, whoever asked it to. */
  readonly drained: Promise<void>
  #resolve_drained: () => void = () => undefined
  #child: ChildProcess | undefined
  #failures = 0
  #stopping = false
  #retry: NodeJS.Timeout | undefined

  constructor(plan: Plan, pid_file: string, log: Log) {
    this.#plan = plan
    this.#pid_file = pid_file
    this.#log = log.child({ child: plan.name })
    this.drained = new Promise(resolve => {
      this.#resolve_drained = resolve
    })
  }

  /** Resolves when the process says that it is ready. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = this.#spawn()
      const limit = setTimeout(() => {
        reject(new StartRefused(`${this.#plan.name} did not become ready within ${START_LIMIT_MS / 1000} s`))
      }, START_LIMIT_MS)
      const settle = (act: () => void): void => {
        clearTimeout(limit)
        act()
      }
      child.on('message', (word: Word) => {
        if (word.ready) settle(resolve)
        else if (word.refused !== undefined) {
          const sentence = word.refused
          settle(() => reject(new StartRefused(sentence)))
        }
      })
      child.once('exit', code =>
        settle(() => reject(new StartRefused(`${this.#plan.name} ended while it started (exit code ${code})`))),
      )
    })
  }

  /**
   * Resolves when a process that drains has, or when the wait is given up; at once for the others. One that is killed
   * meanwhile is started again: whoever takes its place goes on with the drain.
   */
  async drain(given_up: AbortSignal): Promise<void> {
    if (!this.#plan.drains || given_up.aborted) return
    if (this.#child?.connected) this.#child.send({ drain: true } satisfies Word)
    const abandoned = new Promise(resolve => given_up.addEventListener('abort', resolve, { once: true }))
    await Promise.race([this.drained, abandoned])
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#retry)
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    child.kill('SIGTERM')
    await ended
    clearTimeout(limit)
    rmSync(this.#pid_file, { force: true })
  }

  #spawn(): ChildProcess {
    const started = Date.now()
    // A group of its own: Ctrl-C in the terminal reaches the supervisor alone, which then stops the others in order.
    const { by, users } = this.#plan.fewer ?? { by: [], users: null }
    const [execPath = process.execPath, ...execArgv] = [...by, process.execPath, ...process.execArgv]
    const child = fork(join(build, this.#plan.script), becoming(users), {
      execPath,
      execArgv,
      env: this.#plan.env,
      detached: true,
    })
    this.#child = child
    writePid(this.#pid_file, child.pid)
    child.on('message', (word: Word) => {
      if (word.drained) this.#resolve_drained()
    })
    child.once('exit', (code, signal) => {
      if (this.#stopping || code === EXIT_REFUSED) return
      this.#again(code, signal, Date.now() - started)
    })
    child.once('error', err => this.#log.error({ err }, 'could not be started'))
    return child
  }

  #again(code: number | null, signal: NodeJS.Signals | null, lived_ms: number): void {
    this.#failures = lived_ms > BACK_OFF.forgotten_after_ms ? 1 : this.#failures + 1
    const delay_ms = Math.min(BACK_OFF.first_ms * 2 ** (this.#failures - 1), BACK_OFF.most_ms)
    this.#log.warn({ code, signal, lived_ms, delay_ms }, 'ended, starting it again')
    this.#retry = setTimeout(() => this.#spawn(), delay_ms)
  }
}
