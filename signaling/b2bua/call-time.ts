import { type Clock, LONGEST_TIMER_MS, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'

/** More time is reserved when this much of the paid time is left. */
const EXTEND_BEFORE_SECONDS = 5

/** Reserves money for more time of a call that is paid for as it runs. */
export interface Prepaid {
  extend(call: {
    readonly call_sid: string
    readonly elapsed_seconds: number
  }): Promise<{ readonly paid_until_seconds: number | null; readonly exhausted: boolean }>
}

type OverCause = 'max_duration' | 'spend_exhausted'

interface TimedCall {
  readonly call_sid: string
  readonly clock: Clock
  readonly prepaid: Prepaid
  readonly log: Log
  /** The time or the money is over. */
  over(cause: OverCause): void
}

/** The time of a call since its answer, with the limits that end it. */
export class CallTime {
  readonly #call: TimedCall
  #answered_ms: number | null = null
  #limit: Timer | null = null
  #money: Timer | null = null
  #stopped = false

  constructor(call: TimedCall) {
    this.#call = call
  }

  get begun(): boolean {
    return this.#answered_ms !== null
  }

  /** Since the answer; 0 before it. */
  get elapsed_ms(): number {
    return this.#answered_ms === null ? 0 : this.#call.clock.monotonic_ms() - this.#answered_ms
  }

  begin(): void {
    this.#answered_ms = this.#call.clock.monotonic_ms()
  }

  /** Ends the call `seconds` after its answer; null: without a limit. */
  limitTo(seconds: number | null, cause: OverCause): void {
    if (seconds === null || this.#stopped) return
    this.#limit?.cancel()
    // A timer may fire early, hence the 5 ms.
    const ms = Math.min(LONGEST_TIMER_MS, Math.max(0, seconds * 1000 + 5 - this.elapsed_ms))
    this.#limit = this.#call.clock.after(ms, () => this.#call.over(cause))
  }

  /** Reserves more time before the paid time runs out. The call ends when the money is exhausted. */
  payAsItRuns(paid_until_seconds: number | null): void {
    if (paid_until_seconds === null || this.#stopped) return
    this.#money?.cancel()
    const { clock, prepaid, log, call_sid } = this.#call
    const due_ms = Math.max(0, (paid_until_seconds - EXTEND_BEFORE_SECONDS) * 1000 - this.elapsed_ms)
    this.#money = clock.after(Math.min(due_ms, LONGEST_TIMER_MS), () => {
      const elapsed_seconds = Math.ceil(this.elapsed_ms / 1000)
      prepaid.extend({ call_sid, elapsed_seconds }).then(
        extension => {
          if (extension.exhausted) this.limitTo(extension.paid_until_seconds ?? elapsed_seconds, 'spend_exhausted')
          else this.payAsItRuns(extension.paid_until_seconds)
        },
        err => {
          // Calls in progress fail open (threats §2.6): the reservation is retried in about 5 s.
          log.error({ err }, 'the reservation of a call could not be extended')
          this.payAsItRuns(Math.ceil(this.elapsed_ms / 1000) + EXTEND_BEFORE_SECONDS + 5)
        },
      )
    })
  }

  /** The call ends: no limit applies any more. */
  stop(): void {
    this.#stopped = true
    this.#limit?.cancel()
    this.#money?.cancel()
  }
}
