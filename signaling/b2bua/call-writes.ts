import { pause, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { type CallStep, type CallWritten, writeCall } from '../../core/state/calls/running-calls.ts'
import type { Trx } from '../../core/state/index.ts'
import { isPassing } from '../../core/state/index.ts'
import type { CallContext } from './context.ts'

/** A write that the state cannot take is tried again this late at most: calls go on without storage (threats §2.6). */
const RETRY_MS = 5000
/** How often a write is tried that fails for another reason than the state. */
const MAX_TRIES = 3
/** How long what nobody waits for (attempts) is kept back, to travel with what comes next. */
const LAZY_MS = 25

/** What becomes of the targets that a call tries. */
export type AttemptStep = Extract<CallStep, { readonly step: 'attempt' | 'attempt_changed' }>

/** What one call writes to the state, in the order in which it happened: a later write waits for those before it. */
export class CallWrites {
  readonly #ctx: Pick<CallContext, 'state' | 'clock' | 'bus'>
  readonly #sid: string
  readonly #log: Log
  #last: Promise<unknown> = Promise.resolve()
  /** Steps that leave together. */
  #steps: CallStep[] = []
  #due: Timer | 'now' | null = null

  constructor(ctx: Pick<CallContext, 'state' | 'clock' | 'bus'>, sid: string, log: Log) {
    this.#ctx = ctx
    this.#sid = sid
    this.#log = log
  }

  /** Work of a transaction of its own. When it fails that is logged: the call goes on without it. */
  transaction(work: (trx: Trx) => Promise<unknown>): Promise<void> {
    void this.#send()
    const settled = this.#last
      .then(() => this.#ctx.state.transaction(work))
      .then(
        () => undefined,
        err => this.#log.error({ err }, 'a change of the call was not saved'),
      )
    this.#last = settled
    return settled
  }

  /** What must not be lost: it is tried until the state takes it. */
  step(step: CallStep): void {
    this.#steps.push(step)
    if (this.#due === 'now') return
    this.#due?.cancel()
    this.#due = 'now'
    queueMicrotask(() => void this.#send())
  }

  /** As `step`, for what nobody waits for: it travels with the next step, or leaves after a moment. */
  attempt(step: AttemptStep): void {
    this.#steps.push(step)
    this.#due ??= this.#ctx.clock.after(LAZY_MS, () => void this.#send())
  }

  /** The last step, with whatever else has not left yet; undefined when it could not be written. */
  async end(step: Extract<CallStep, { readonly step: 'end' }>): Promise<CallWritten | undefined> {
    // What a transaction has to say comes before.
    await this.#last
    this.#steps.push(step)
    return await this.#send()
  }

  async #send(): Promise<CallWritten | undefined> {
    if (this.#due !== 'now') this.#due?.cancel()
    this.#due = null
    const steps = this.#steps
    if (steps.length === 0) return undefined
    this.#steps = []
    const written = this.#last.then(() => this.#write(steps))
    this.#last = written
    return await written
  }

  async #write(steps: readonly CallStep[]): Promise<CallWritten | undefined> {
    const { state, bus, clock } = this.#ctx
    for (let tries = 1; ; tries++) {
      try {
        const written = await writeCall(state.db, this.#sid, steps)
        if (written.told > 0) bus.ring('outbox')
        return written
      } catch (err) {
        this.#log.error({ err, tries }, 'a change of the call is not saved yet')
        if (!isPassing(err) && tries >= MAX_TRIES) return undefined
        await pause(clock, Math.min(RETRY_MS, 50 * 2 ** tries))
      }
    }
  }
}
