import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TlsOptions } from '../core/runtime/certificate.ts'
import type { Word } from '../core/runtime/lifecycle.ts'
import type { Log } from '../core/runtime/log.ts'
import { becoming } from '../core/runtime/own-user.ts'
import { programsRunner } from '../core/runtime/program-runner.ts'
import { EXIT_REFUSED, StartRefused } from '../core/runtime/start-refused.ts'
import { builtModule } from '../core/runtime/tree.ts'
import { Doorbell, type UdpPlace } from './doorbell.ts'
import type { Fewer } from './least-privilege.ts'
import { writePid } from './pid-file.ts'

/** A process to keep running. `script` is a built module; `env` is its whole environment. */
export interface Plan {
  readonly name: string
  readonly script: string
  readonly env: Readonly<Record<string, string>>
  /** How to start it with fewer rights than ours; null keeps all of them. */
  readonly fewer: Fewer | null
  /**
   * The process has long-running work. The supervisor asks it to drain before any process stops. Once it has drained,
   * on anybody's request, the supervisor stops all.
   */
  readonly drains?: true
  /** The process serves TLS, so it hears of renewed certificates. */
  readonly serves_tls?: true
  /** The process sleeps until a datagram comes to this UDP port. */
  readonly sleeps_at?: UdpPlace
  /** The process opens the state, so it starts when the state is ready. */
  readonly needs_state?: true
}

interface Supervisor {
  /** Passes renewed certificates to the processes that serve TLS. */
  renewTls(tls: TlsOptions): void
}

interface SuperviseOptions {
  readonly run_dir: string
  readonly log: Log
  /** How long a drain may take when the platform stops. */
  readonly drain_ms: number
  /**
   * Called before a process starts, with what stops all in order after a drain. A second call of it ends the wait for
   * the drain.
   */
  readonly begun: (stop: () => void) => void
  /** Migrates the state. Runs while the processes that do not need it start. */
  readonly prepare: () => Promise<void>
  /** Called when all processes have ended. */
  readonly stopped: () => Promise<void>
}

const BACK_OFF = { first_ms: 100, most_ms: 3000, forgotten_after_ms: 20_000 }
/** Longest start of a process. Starts take a second or two; the margin is for overloaded machines. */
const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 10_000
const KEEPS_ALL: Fewer = { by: [], user: null, as_programs: [] }

/**
 * Starts the plans together, because each process waits for those that it connects to. Resolves when all are ready, and
 * keeps them running: a process that dies is restarted with back-off, and the others keep running. Rejects with
 * StartRefused when one of them refuses to start.
 * After a stop, also one while they start, or when one has drained by itself, processes stop in reverse order:
 * dependents first.
 */
export async function supervise(plans: readonly Plan[], options: SuperviseOptions): Promise<Supervisor> {
  const { run_dir, log, drain_ms, begun, prepare, stopped } = options
  const hurry = new AbortController()
  let stopping = false
  const stop = (): void => {
    if (stopping) {
      hurry.abort()
      return
    }
    stopping = true
    // Not AbortSignal.timeout in AbortSignal.any: Node 20 garbage-collects that signal, so it never fires.
    setTimeout(() => hurry.abort(), drain_ms)
    void Promise.all(kept.map(one => one.drain(hurry.signal)))
      .then(() => stopAll(kept))
      .then(stopped)
      .then(() => process.exit(0))
  }
  const kept = plans.map(plan => new KeptProcess(plan, join(run_dir, `${plan.name}.pid`), log))
  for (const one of kept) void one.drained.then(stop)
  begun(stop)
  try {
    const early = kept.filter(({ needs_state }) => !needs_state).map(one => one.start())
    const late = prepare().then(() => {
      // A process that refused to start may have stopped all in the meantime.
      if (stopping) return
      return Promise.all(kept.filter(({ needs_state }) => needs_state).map(one => one.start()))
    })
    await Promise.all([...early, late])
  } catch (error) {
    // What a stop ended has refused nothing.
    if (!stopping) {
      // From here on `drained` must not call stop(), which would exit with 0: the refusal decides the exit code.
      stopping = true
      await stopAll(kept)
      throw error
    }
  }
  // `stop` ends this process when all have ended, and nobody hears that the platform is up.
  if (stopping) await new Promise<never>(() => undefined)
  return {
    renewTls(renewed) {
      for (const one of kept) one.tellTls(renewed)
    },
  }
}

async function stopAll(kept: readonly KeptProcess[]): Promise<void> {
  for (const one of [...kept].reverse()) await one.stop()
}

class KeptProcess {
  readonly #plan: Plan
  readonly #pid_file: string
  readonly #log: Log
  /** Resolves when the process has drained, on anybody's request. */
  readonly drained: Promise<void>
  #resolve_drained: () => void = () => undefined
  #child: ChildProcess | undefined
  #failures = 0
  /** It has been ready, so it or its successor may have work. */
  #has_worked = false
  #draining = false
  #stopping = false
  #doorbell: Doorbell | undefined
  #retry: NodeJS.Timeout | undefined

  constructor(plan: Plan, pid_file: string, log: Log) {
    this.#plan = plan
    this.#pid_file = pid_file
    this.#log = log.child({ child: plan.name })
    this.drained = new Promise(resolve => {
      this.#resolve_drained = resolve
    })
  }

  get needs_state(): boolean {
    return this.#plan.needs_state === true
  }

  /** Starts the process. Resolves when it reports that it is ready, or sleeps. */
  async start(): Promise<void> {
    if (this.#plan.sleeps_at) return await this.#sleep(this.#plan.sleeps_at)
    await new Promise<void>((resolve, reject) => {
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
   * Asks the process to drain if its plan has `drains` and it has started. Resolves when it has drained or `given_up`
   * aborts. A successor is asked too: the process may be dead, or die meanwhile.
   */
  async drain(given_up: AbortSignal): Promise<void> {
    if (!this.#plan.drains || !this.#has_worked || given_up.aborted) return
    this.#draining = true
    if (this.#child?.connected) this.#child.send({ drain: true } satisfies Word)
    const abandoned = new Promise(resolve => given_up.addEventListener('abort', resolve, { once: true }))
    await Promise.race([this.drained, abandoned])
  }

  /** A process that is down now reads the files itself when it starts again. */
  tellTls(renewed: TlsOptions): void {
    if (this.#plan.serves_tls && this.#child?.connected) this.#child.send({ renewed } satisfies Word)
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#retry)
    this.#endSleep()
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
    // `detached` puts it in its own group: Ctrl-C reaches only the supervisor, which then stops the others in order.
    const { by, user, as_programs } = this.#plan.fewer ?? KEEPS_ALL
    const [execPath = process.execPath, ...execArgv] = [...by, process.execPath, ...process.execArgv]
    const child = fork(builtModule(this.#plan.script), becoming(user), {
      execPath,
      execArgv,
      env: this.#plan.env,
      detached: true,
    })
    this.#child = child
    writePid(this.#pid_file, child.pid)
    const programs = programsRunner(as_programs)
    if (this.#plan.sleeps_at) this.#wake(child)
    child.on('message', (word: Word) => {
      if (word.ready) this.#has_worked = true
      if (word.ready && this.#draining) child.send({ drain: true } satisfies Word)
      if (word.drained) this.#resolve_drained()
      if (word.to_stop !== undefined) programs.stop(word.to_stop)
      if (!word.to_run || !this.#plan.fewer) return
      void programs.run(word.to_run).then(has_run => {
        if (child.connected) child.send({ has_run } satisfies Word)
      })
    })
    child.once('exit', (code, signal) => {
      if (this.#stopping || (code === EXIT_REFUSED && !this.#plan.sleeps_at)) return
      this.#again(code, signal, Date.now() - started)
    })
    child.once('error', err => this.#log.error({ err }, 'a process could not be started'))
    return child
  }

  /** Waits for the first datagram of a process that sleeps. */
  async #sleep(place: UdpPlace): Promise<void> {
    this.#doorbell = await Doorbell.open(place, () => this.#spawn())
    // Who sees that no process runs may call it.
    rmSync(this.#pid_file, { force: true })
    if (this.#stopping) this.#endSleep()
  }

  #endSleep(): void {
    this.#doorbell?.close()
    this.#doorbell = undefined
  }

  /** Gives a process its socket, and ends it when it has no work. */
  #wake(child: ChildProcess): void {
    child.on('message', (word: Word) => {
      if (word.asks_for_door) this.#doorbell?.lendTo(child)
      if (word.refused !== undefined) this.#log.error({ why: word.refused }, 'a process refused to start')
      if (word.sleeps) child.kill('SIGTERM')
      if (!word.ready) return
      this.#doorbell?.leaveTo(child)
      this.#doorbell = undefined
    })
  }

  #again(code: number | null, signal: NodeJS.Signals | null, lived_ms: number): void {
    if (this.#plan.sleeps_at && code === 0) {
      this.#restart()
      return
    }
    this.#failures = lived_ms > BACK_OFF.forgotten_after_ms ? 1 : this.#failures + 1
    const delay_ms = Math.min(BACK_OFF.first_ms * 2 ** (this.#failures - 1), BACK_OFF.most_ms)
    this.#log.warn({ code, signal, lived_ms, delay_ms }, 'a process ended and is started again')
    this.#retry = setTimeout(() => this.#restart(), delay_ms)
  }

  #restart(): void {
    const { sleeps_at } = this.#plan
    // Datagrams that nobody has taken yet still wait for the process.
    if (!sleeps_at || this.#doorbell) this.#spawn()
    else this.#sleep(sleeps_at).catch(err => this.#log.error({ err, sleeps_at }, 'a process cannot be woken'))
  }
}
