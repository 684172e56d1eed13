import type { CallRow } from '../../core/state/calls/running-calls.ts'
import type { DocumentTarget, Entry } from '../../markup/interpreter/types.ts'
import type { Headers } from '../drachtio/types.ts'
import { Call, passedReason } from './call.ts'
import type { CallContext } from './context.ts'
import { Hunt, type HuntHop, type HuntOutcome } from './hunt.ts'
import type { Limits } from './inbound-call.ts'
import type { Leg, LegListener } from './leg.ts'
import type { MediaEvent, MediaSession } from './media.ts'
import { passMessage } from './message.ts'
import type { OutboundLeg } from './outbound-leg.ts'
import type { OutboundWatcher } from './outbound-watcher.ts'
import { passNotify } from './refer-passing.ts'
import { answeredHost, type CallScript, type ScriptEntry } from './script-host.ts'
import { type SecondRoute, takeSecondRoute } from './second-route.ts'
import { causeOfLeg, legSummary } from './summary.ts'
import { transferAsked, transfersRefused } from './transfer.ts'

/** A call that we place: by API, as a child of a Dial, or as the target of a transfer. */
export class OutboundCall extends Call {
  readonly #limits: Limits
  readonly #watcher: OutboundWatcher
  #hunt: Hunt | null = null
  #leg: OutboundLeg | null = null
  #script: CallScript | null = null
  #initiated = false
  #endHeaders: Headers = {}
  #detail: string | null = null

  constructor(
    ctx: CallContext,
    options: { row: CallRow; session: MediaSession; limits: Limits; watcher: OutboundWatcher },
  ) {
    super(ctx, options.row, options.session)
    this.#limits = options.limits
    this.#watcher = options.watcher
    this.onEnd(final => options.watcher.ended?.(final))
  }

  /** The answered leg, or the leg of the current attempt. */
  get leg(): OutboundLeg | null {
    return this.#leg ?? this.#hunt?.leg ?? null
  }

  get script(): CallScript | null {
    return this.#script
  }

  /** Starts a script, which receives the call's keys, media events and end from now on. */
  run(script: CallScript): void {
    this.#script = script
    script.start()
  }

  #runOn(leg: Leg, entry: ScriptEntry): void {
    const host = answeredHost(this, leg, () => void this.end({ cause: 'script' }))
    this.run(this.ctx.scripts.create(host, entry))
  }

  /** Replaces the running document, or the call's bridge, by another document; false when the call cannot run one. */
  redirect(entry: Entry, fallback?: DocumentTarget): boolean {
    if (this.#script?.kind === 'call') return this.#script.update(entry, fallback)
    const leg = this.#leg
    if (!leg?.answered || this.ended) return false
    this.#script?.drop()
    this.#watcher.left?.()
    this.#runOn(leg, { kind: 'call', entry, fallback: fallback ?? null })
    return true
  }

  /** Headers of the final response or BYE. They may go only to recipients that may see them. */
  get endHeaders(): Headers {
    return this.#endHeaders
  }

  /** What is kept of the answer; null before it. */
  get answer(): OutboundLeg['answer'] {
    return this.#leg?.answer ?? null
  }

  get detail(): string | null {
    return this.#detail
  }

  begin(
    hops: readonly HuntHop[],
    options: { readonly ring_ms: number; readonly prefer: Leg | null; readonly second?: SecondRoute | null },
  ): void {
    const { second = null } = options
    this.#hunt = new Hunt(this.ctx, {
      call_sid: this.sid,
      hops,
      session: this.session,
      keep: step => this.keepAttempt(step),
      ring_ms: options.ring_ms,
      log: this.log,
      prefer: options.prefer,
      next: second && (() => takeSecondRoute(this, second).then(found => (found.kind === 'hops' ? found.hops : []))),
      listener: {
        ...this.#listener(),
        attempt: (hop, { call_id }) => {
          if (this.#initiated) return
          this.#initiated = true
          this.initiated({ sip_call_id: call_id, ...(hop.carrier_id === null ? {} : { carrier_id: hop.carrier_id }) })
          this.#watcher.initiated?.()
        },
        ringing: () => {
          this.ringing()
          this.#watcher.ringing?.()
        },
        early: async leg => {
          this.ringing()
          this.#leg = leg
          this.#watcher.early?.(leg)
          return true
        },
        answered: leg => this.#answered(leg),
        failed: outcome => void this.#failed(outcome),
      },
    })
    this.#hunt.start()
  }

  protected legs(): Leg[] {
    return this.#leg ? [this.#leg] : []
  }

  protected stop(bye_reason: string | null, headers: Readonly<Record<string, string>>): void {
    this.#script?.legEnded(headers)
    void this.#hunt?.end(bye_reason)
  }

  protected hungUp(): 'called_hung_up' {
    return 'called_hung_up'
  }

  protected mediaSummary(): object | null {
    return this.#leg ? { a: null, b: legSummary(this.#leg), mode: null, ...this.otherLegs(this.#leg) } : null
  }

  protected pddMs(): number | null {
    return this.#hunt?.pdd_ms ?? null
  }

  #answered(leg: OutboundLeg): void {
    if (this.ended) {
      void leg.end(null)
      return
    }
    this.#leg = leg
    const { max_duration_seconds, max_duration_reason, paid_until_seconds } = this.#limits
    this.answeredNow({ seconds: max_duration_seconds, reason: max_duration_reason })
    this.time.payAsItRuns(paid_until_seconds)
    const { recording } = this.#limits
    if (recording) this.ctx.recording.byPolicy({ call: this, leg }, null, recording)
    this.#watcher.answered(leg)
  }

  #failed(outcome: HuntOutcome): Promise<void> {
    this.#endHeaders = outcome.headers
    this.#detail = outcome.detail
    if (outcome.link_lost) return this.end({ cause: 'node_lost' })
    const ring_timeout = outcome.reason === 'no_answer' && outcome.code === 487
    return this.end({
      cause: outcome.reason === 'target_unreachable' ? 'unreachable' : ring_timeout ? 'ring_timeout' : 'refused',
      sip_code: outcome.code,
      status: outcome.status,
      reason: outcome.reason,
    })
  }

  #listener(): LegListener {
    return {
      ended: (leg, { cause, headers }) => {
        if (leg !== this.leg) return
        this.#endHeaders = headers
        const reason = passedReason(headers)
        this.legEnded(leg, causeOfLeg(cause, 'b', reason ? { reason } : {}))
      },
      digit: (leg, digit, by) => {
        if (this.#script && !this.#script.done) this.#script.digit(digit, by)
        else if (this.#watcher.digit) this.#watcher.digit(digit, by)
        else this.passKey(leg, digit, by)
      },
      refer: (leg, request) => {
        if (transfersRefused({ call: this, leg }, request)) return
        if (this.#script && !this.#script.done) this.#script.referred('self', request)
        else if (this.#watcher.refer) this.#watcher.refer(request)
        else transferAsked({ call: this, leg }, request)
      },
      notify: (leg, request) => {
        if (passNotify({ call: this, leg }, request)) return
        if (this.#script) this.#script.notified(request)
        else request.respond(200)
      },
      message: (leg, request) => void passMessage({ call: this, leg }, request),
      measured: (leg, figures) => this.legMeasured(leg, figures),
      held: (_leg, held) => this.event('state', null, { what: held ? 'held' : 'resumed', leg: 'b' }),
      media: (leg, event: MediaEvent) => {
        this.mediaSample(leg, event)
        if (leg === this.leg) this.#script?.media(event)
      },
    }
  }
}
