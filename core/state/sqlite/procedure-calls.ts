import { systemClock } from '../../runtime/clock.ts'
import { LONG_PROCEDURES, SYNCED_SOON } from '../procedures/kinds.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { LocalConnection } from './local.ts'
import type { LogSync } from './log-sync.ts'
import type { AskedProcedure, StateThread } from './thread.ts'

interface Parts {
  readonly thread: StateThread
  /** Runs single procedures on the calling thread; null: the state's thread runs all. */
  readonly here: Pick<LocalConnection, 'procedure' | 'crowded'> | null
  readonly log: LogSync
  readonly busy_timeout_ms: number
}

/**
 * Runs each procedure in its own transaction. Procedures called in one turn of the event loop go to the state's thread
 * in one message. A single one runs on the calling thread if that has an inline connection and the
 * state's thread is idle (decision 0002).
 */
export class ProcedureCalls {
  readonly #thread: StateThread
  #here: Parts['here']
  readonly #log: LogSync
  readonly #busy_timeout_ms: number
  /** Procedures called in this turn of the event loop. */
  #asked: AskedProcedure[] = []
  /** Number of long procedures in progress. */
  #long = 0

  constructor({ thread, here, log, busy_timeout_ms }: Parts) {
    this.#thread = thread
    this.#here = here
    this.#log = log
    this.#busy_timeout_ms = busy_timeout_ms
  }

  /**
   * Runs a procedure and resolves once its writes are on disk, or committed if it is in SYNCED_SOON. Fails as busy when
   * it cannot begin within `within_ms`. Input and result are plain data that must not change. @throws StateError
   */
  async call(name: ProcedureName, input: unknown, within_ms = this.#busy_timeout_ms): Promise<unknown> {
    const until_ms = systemClock.monotonic_ms() + within_ms
    const long = LONG_PROCEDURES.has(name)
    if (long) this.#long++
    const result = await new Promise<unknown>((resolve, reject) => {
      this.#asked.push({ name, input, until_ms, resolve, reject })
      if (this.#asked.length === 1) setImmediate(() => this.#begin())
    }).finally(() => {
      if (long) this.#long--
    })
    if (SYNCED_SOON.has(name)) this.#log.soon()
    else await this.#log.synced()
    return result
  }

  /** Begins the procedures called so far. */
  #begin(): void {
    const asked = this.#asked
    this.#asked = []
    const short = asked.filter(({ name }) => !LONG_PROCEDURES.has(name))
    const [only] = short
    // Procedures in progress on the thread come first, and concurrent ones share a commit.
    const alone = short.length === 1 && !this.#thread.busy
    // A thread that is busy with a long procedure does not mean that calls arrive concurrently.
    const crowded = short.length > 1 || (this.#thread.busy && this.#long === 0)
    if (crowded) this.#here?.crowded()
    const done = alone && only !== undefined && this.#runHere(only)
    const left = done ? asked.filter(one => one !== only) : asked
    if (left.length > 0) this.#thread.procedures(left)
  }

  close(): void {
    this.#begin()
    this.#here = null
  }

  #runHere({ name, input, resolve, reject }: AskedProcedure): boolean {
    if (!this.#here) return false
    try {
      const done = this.#here.procedure(name, input)
      if (done) resolve(done.result)
      return done !== null
    } catch (error) {
      reject(error as Error)
      return true
    }
  }
}
