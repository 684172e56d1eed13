import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { isGone, type Machine, processName, processNamed } from '../../runtime/machine.ts'
import type { State } from '../index.ts'
import { stateOfTerm } from './state-of-term.ts'
import { holdTask, releaseTask, TASK_LEASE_MS, type TaskTerm } from './task-lease-rows.ts'

const RENEW_MS = 5000
/** Ends before the lease that others see, because a run that begins at the last moment takes a while. */
const HELD_MS = TASK_LEASE_MS - RENEW_MS

interface TaskLeaseOptions {
  readonly name: string
  readonly machine: Machine
  readonly state: State
  readonly clock: Clock
  readonly log: Log
}

/** The lease of a task that only one process may run at a time. Its times are of the clock that all machines share. */
export class TaskLease {
  readonly #options: TaskLeaseOptions
  readonly #holder: string
  readonly #timer: Timer
  /** For the writes of the task: what this process writes after another one took the lease does not count. */
  readonly state: State
  #term: TaskTerm | null = null
  #held_until_ms = Number.NEGATIVE_INFINITY
  #renewing: Promise<void> = Promise.resolve()

  constructor(options: TaskLeaseOptions) {
    this.#options = options
    this.state = stateOfTerm(options.state, () => this.#term)
    this.#holder = processName({ ...options.machine, pid: process.pid })
    this.#timer = options.clock.every(RENEW_MS, () => void this.renew())
  }

  /** Whether this process holds the lease, by the monotonic clock: a process suspended for too long has lost it. */
  get held(): boolean {
    return this.#options.clock.monotonic_ms() < this.#held_until_ms
  }

  /** Takes or renews the lease. Never rejects. */
  renew(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#hold())
    return this.#renewing
  }

  /** Releases the lease, so that another process can take it at once. */
  async stop(): Promise<void> {
    this.#timer.cancel()
    await this.#renewing
    this.#held_until_ms = Number.NEGATIVE_INFINITY
    const { state, name, log } = this.#options
    await releaseTask(state.db, name, this.#holder).catch(err =>
      log.warn({ err, task: name }, 'the lease of a background task was not released'),
    )
  }

  async #hold(): Promise<void> {
    const { state, name, machine, clock, log } = this.#options
    const asked_ms = clock.monotonic_ms()
    const gone = (holder: string): boolean => holder !== this.#holder && isGone(processNamed(holder), machine)
    const asked = { name, holder: this.#holder, now: () => clock.now(), isGone: gone }
    try {
      this.#term = await holdTask(state, asked)
      if (this.#term !== null) this.#held_until_ms = asked_ms + HELD_MS
    } catch (err) {
      log.error({ err, task: name }, 'the lease of a background task could not be taken or renewed')
    }
  }
}
