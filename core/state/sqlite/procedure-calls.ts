import { systemClock } from '../../runtime/clock.ts'
import { LONG_PROCEDURES, type ProcedureName, SYNCED_SOON } from '../procedures/table.ts'
import type { InlineConnection } from './inline.ts'
import type { LogSync } from './log-sync.ts'
import type { AskedProcedure, StateThread } from './thread.ts'

interface Parts {
  readonly thread: StateThread
  readonly inline: InlineConnection | null
  readonly log: LogSync
  readonly busy_timeout_ms: number
}

/**
 * Procedures in transactions of their own. Those that are asked for in one turn of the event loop are handed to the
 * state's thread together (decision 0531); one that is alone, while that thread has nothing under way, is run here when
 * there is a connection for it (decision 0510).
 */
export class ProcedureCalls {
  readonly #thread: StateThread
  #inline: InlineConnection | null
  readonly #log: LogSync
  readonly #busy_timeout_ms: number
  /** Of this turn of the event loop. */
  #asked: AskedProcedure[] = []
  /** Long procedures that are under way. */
  #long = 0

  constructor({ thread, inline, log, busy_timeout_ms }: Parts) {
    this.#thread = thread
    this.#inline = inline
    this.#log = log
    this.#busy_timeout_ms = busy_timeout_ms
  }

  /**
   * Input and result are plain data, which nobody changes any more. What has not begun within `within_ms` is not begun
   * any more, and refused as busy. Resolves when the disk has what it acknowledges. @throws StateError
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

  /** Begins what was asked for until now. */
  #begin(): void {
    const asked = this.#asked
    this.#asked = []
    const short = asked.filter(({ name }) => !LONG_PROCEDURES.has(name))
    const [only] = short
    // What the thread has begun comes first, and what comes together is committed together.
    const alone = short.length === 1 && !this.#thread.busy
    // A long one keeps the thread busy now and then: that says nothing of those that come next.
    const crowded = short.length > 1 || (this.#thread.busy && this.#long === 0)
    if (crowded) this.#inline?.crowded()
    const done = alone && only !== undefined && this.#runHere(only)
    const left = done ? asked.filter(one => one !== only) : asked
    if (left.length > 0) this.#thread.procedures(left)
  }

  close(): void {
    this.#begin()
    this.#inline?.close()
    this.#inline = null
  }

  #runHere({ name, input, resolve, reject }: AskedProcedure): boolean {
    if (!this.#inline) return false
    try {
      const done = this.#inline.procedure(name, input)
      if (done) resolve(done.result)
      return done !== null
    } catch (error) {
      reject(error as Error)
      return true
    }
  }
}
