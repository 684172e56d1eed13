import { delay, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { type CallStep, type CallWritten, writeCall } from '../../core/state/calls/running-calls.ts'
import type { Trx } from '../../core/state/index.ts'
import { isPassing } from '../../core/state/index.ts'
import type { NodeServices } from './services.ts'

/** The longest back-off between attempts to write. Calls continue while the storage is away (threats §2.6). */
const RETRY_MS = 5000
/** The number of attempts for a write whose error is not transient. */
const MAX_TRIES = 3
/** How long steps that nobody waits for (attempts) are held back to share a transaction with the next step. */
const LAZY_MS = 25

/** The steps that record the targets that a call tries, and their results. */
export type AttemptStep = Extract<CallStep, { readonly step: 'attempt' | 'attempt_changed' }>

/** The writes of one call, in the order of its events: each write waits for the ones before it. */
export class CallWrites {
  readonly #ctx: Pick<NodeServices, 'state' | 'clock' | 'bus' | 'ends'>
  readonly #sid: string
  readonly #log: Log
  #last: Promise<unknown> = Promise.resolve()
  /** Steps that the next write carries together. */
  #steps: CallStep[] = []
  #due: Timer | 'now' | null = null
  /** The steps that are not written yet, in order. */
  readonly #unwritten = new Set<CallStep>()
  #end: CallStep | null = null
  /** The last attempt to write has failed. */
  #away = false
  #kept = false

  constructor(ctx: Pick<NodeServices, 'state' | 'clock' | 'bus' | 'ends'>, sid: string, log: Log) {
    this.#ctx = ctx
    this.#sid = sid
    this.#log = log
  }

  /** Runs `work` in its own transaction. A failure is logged, and the call continues without it. */
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

  /** Writes a step that must not be lost. Transient errors are retried until the write succeeds. */
  step(step: CallStep): void {
    this.#add(step)
    if (this.#due === 'now') return
    this.#due?.cancel()
    this.#due = 'now'
    queueMicrotask(() => void this.#send())
  }

  /** Like `step`, for steps that nobody waits for: the write goes with the next step or after `LAZY_MS`. */
  attempt(step: AttemptStep): void {
    this.#add(step)
    this.#due ??= this.#ctx.clock.after(LAZY_MS, () => void this.#send())
  }

  /** Writes the last step with all pending ones; undefined when the write failed. */
  async end(step: Extract<CallStep, { readonly step: 'end' }>): Promise<CallWritten | undefined> {
    this.#unwritten.add(step)
    this.#end = step
    if (this.#away) this.#keep()
    // Transactions that have begun are written before the end.
    await this.#last
    this.#steps.push(step)
    return await this.#send()
  }

  #add(step: CallStep): void {
    this.#steps.push(step)
    this.#unwritten.add(step)
  }

  /** Keeps what is not written in a file, once the call has ended. The end comes last: nothing can change it. */
  #keep(): void {
    const end = this.#end
    if (end === null || this.#kept) return
    this.#kept = true
    const others = [...this.#unwritten].filter(step => step !== end)
    this.#ctx.ends.keep({ sid: this.#sid, steps: [...others, end] })
  }

  #settle(steps: readonly CallStep[]): Promise<void> | undefined {
    for (const step of steps) this.#unwritten.delete(step)
    return this.#kept && this.#unwritten.size === 0 ? this.#ctx.ends.forget(this.#sid) : undefined
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
        if (written.queued > 0) bus.ring('outbox')
        this.#away = false
        const settled = this.#settle(steps)
        if (settled) await settled
        return written
      } catch (err) {
        this.#log.error({ err, tries }, 'a change of the call is not saved yet')
        if (!isPassing(err) && tries >= MAX_TRIES) {
          await this.#settle(steps)
          return undefined
        }
        this.#away = true
        this.#keep()
        await delay(clock, Math.min(RETRY_MS, 50 * 2 ** tries))
      }
    }
  }
}
