import { type EndFacts, type Ending, ending } from '../../core/domain/calls/endings.ts'
import type { LegFigures } from '../../core/domain/calls/leg-figures.ts'
import { type CallFacts, standardParameters } from '../../core/domain/calls/parameters.ts'
import { type CallRequest, readCallRequest } from '../../core/domain/calls/request.ts'
import { shownFacts } from '../../core/domain/calls/typed.ts'
import { COMPLETED_ELSEWHERE, readReasons } from '../../core/domain/sip/values.ts'
import { type Clock, delay, iso } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { addCallEvent } from '../../core/state/calls/call-events.ts'
import { addMediaQuality } from '../../core/state/calls/media-quality.ts'
import type { CallRow } from '../../core/state/calls/running-calls.ts'
import { callFactsOf } from '../../core/state/delivery/outbox.ts'
import type { CallEventTable, Trx } from '../../core/state/index.ts'
import { CallTime } from './call-time.ts'
import { type AttemptStep, CallWrites } from './call-writes.ts'
import type { CallContext } from './context.ts'
import type { KeyWay, Leg } from './leg.ts'
import type { MediaEvent, MediaSession } from './media.ts'
import { Pairing, type PartyOf } from './pairing.ts'
import type { DialogTags } from './refer-to.ts'
import type { DocumentFailure, ScriptedCall } from './scripted-call.ts'
import { legSummary } from './summary.ts'

/** How long the end of a call waits for what its last callback reports. */
const LAST_FACTS_MS = 5000

/** A leg and the call that owns it. */
export type Party = PartyOf<Call>

/** The leg of an INVITE that we have sent, and its early dialogs, one per fork. */
export interface RingingLeg extends Leg {
  readonly earlyDialogs: readonly DialogTags[]
}

/**
 * One call. It owns all of its resources: rows, legs, media, timers and slots. Every call ends through `end`, which
 * runs once and releases them all.
 */
export abstract class Call implements ScriptedCall {
  readonly sid: string
  readonly ctx: CallContext
  readonly log: Log
  readonly session: MediaSession
  readonly project_id: string
  protected row: CallRow
  readonly request: CallRequest
  protected readonly time: CallTime
  readonly #writes: CallWrites
  #ending: Promise<void> | null = null
  #final: Ending | null = null
  #ringing = false
  #runs = 0
  readonly #measured: LegFigures[] = []
  /** Which leg is the other side of which, within the call and after a transfer. */
  readonly pairing: Pairing<Call>
  readonly #mediaWatchers = new Set<(event: MediaEvent) => void>()
  readonly #at_end: Record<string, string> = {}
  readonly #lastFacts: Promise<unknown>[] = []
  /** When the call was answered, while the callback of the answer waits for machine detection. */
  #untold_ms: number | null = null
  #failure: DocumentFailure | null = null
  readonly #endListeners: ((ending: Ending) => void)[] = []
  #settle: () => void = () => undefined
  /** Resolves when the call has been answered, or ends. */
  readonly settled = new Promise<void>(resolve => {
    this.#settle = resolve
  })

  constructor(ctx: CallContext, row: CallRow, session: MediaSession) {
    this.ctx = ctx
    this.row = row
    this.sid = row.sid
    this.project_id = row.project_id
    this.session = session
    this.request = readCallRequest(row.request)
    this.log = ctx.log.child({ call_id: row.sid, ...(row.trunk_id ? { trunk_id: row.trunk_id } : {}) })
    this.#writes = new CallWrites(ctx, row.sid, this.log)
    this.pairing = new Pairing<Call>(this, () => this.legs())
    const { clock, prepaid } = ctx
    const over = (cause: 'max_duration' | 'spend_exhausted'): void => void this.end({ cause })
    this.time = new CallTime({ call_sid: row.sid, clock, prepaid, log: this.log, over })
    ctx.calls.add(this)
  }

  /** The current legs. */
  protected abstract legs(): Leg[]
  /** Stops hunts, scripts and children: everything except legs. */
  protected abstract stop(bye_reason: string | null, headers: Readonly<Record<string, string>>): void
  /** How the call ends when this leg's peer hangs up. */
  protected abstract hungUp(leg: Leg): 'caller_hung_up' | 'called_hung_up'
  /** Codecs and packet counts of both legs, for the CDR. */
  protected abstract mediaSummary(): object | null
  protected abstract pddMs(): number | null

  /** The answered legs that have not ended. */
  get parties(): Party[] {
    return this.legs()
      .filter(leg => leg.answered && !leg.ended)
      .map(leg => ({ call: this, leg }))
  }

  /** Our unanswered INVITE whose early dialog may be replaced (RFC 3891 §3); null for none. */
  get ringingLeg(): RingingLeg | null {
    return null
  }

  /** The legs, while a target has accepted the call and its caller is still being answered; none before and after. */
  get settling(): readonly Leg[] {
    return []
  }

  /** Releases a leg after a transfer. The call continues with its other leg, or ends with its last. */
  depart(leg: Leg): void {
    this.pairing.leave(leg)
    if (this.pairing.staffed) {
      void leg.end(null)
      return
    }
    this.pairing.unpair()
    void this.end({ cause: this.hungUp(leg) })
  }

  /** The far end of a leg has hung up, or the leg has failed. */
  protected legEnded(leg: Leg, facts: Omit<EndFacts, 'answered'>): void {
    if (this.pairing.survives(leg)) this.depart(leg)
    else void this.end(facts)
  }

  /** The party joined to our remaining leg has ended. */
  partnerLeft(headers: Readonly<Record<string, string>> = {}): void {
    this.pairing.pairWith(null)
    const [last] = this.parties
    const cause = last && this.hungUp(last.leg) === 'caller_hung_up' ? 'called_hung_up' : 'caller_hung_up'
    void this.end({ cause, headers })
  }

  /** Passes a key to the leg's other side, unless the bridge has already passed it as RFC 4733 packets. */
  protected passKey(leg: Leg, digit: string, by: KeyWay): void {
    const other = this.pairing.peerOf(leg)
    if (!other || (by === 'media' && !this.pairing.partner?.mixed)) return
    leg.passKey(digit, other.leg)
  }

  nextRun(): number {
    return ++this.#runs
  }

  get ended(): boolean {
    return this.#ending !== null
  }

  get answered(): boolean {
    return this.time.begun
  }

  get final(): Ending | null {
    return this.#final
  }

  get facts(): CallFacts {
    return callFactsOf(this.row, this.request)
  }

  get row_now(): CallRow {
    return this.row
  }

  get clock(): Clock {
    return this.ctx.clock
  }

  parameters(): Record<string, string> {
    return standardParameters(this.facts)
  }

  /** Adds parameters to the last callback. */
  tellAtEnd(parameters: Readonly<Record<string, string>>): void {
    Object.assign(this.#at_end, parameters)
  }

  /** Makes the end of the call wait for `facts`, a few seconds at most: the last callback reports them. */
  endAfter(facts: Promise<unknown>): void {
    this.#lastFacts.push(facts)
  }

  documentFailed(failure: DocumentFailure | null): void {
    this.#failure = failure
  }

  /** Sends the callback of the answer, which has waited for the outcome of machine detection. */
  tellAnswer(found: Readonly<Record<string, string>>): void {
    const at_ms = this.#untold_ms
    if (at_ms === null) return
    this.#untold_ms = null
    this.tellAtEnd(found)
    this.#writes.step({ step: 'answer_told', at_ms, extra: found })
  }

  onEnd(listener: (ending: Ending) => void): void {
    this.#endListeners.push(listener)
  }

  persist(work: (trx: Trx) => Promise<unknown>): Promise<void> {
    return this.#writes.transaction(work)
  }

  async persistCallbacks(work: (trx: Trx) => Promise<unknown>): Promise<void> {
    await this.persist(work)
    this.ctx.bus.ring('outbox')
  }

  /** Records an attempt at a target or its result; nobody waits for the write. */
  keepAttempt(step: AttemptStep): void {
    this.#writes.attempt(step)
  }

  divertsBecause = 'unconditional'

  event(kind: CallEventTable['kind'], number: number | null, detail: Readonly<Record<string, unknown>>): void {
    const at_ms = this.ctx.clock.now()
    void this.persist(trx => addCallEvent(trx, { call_sid: this.sid, kind, number, detail: shownFacts(detail) }, at_ms))
  }

  /** The first INVITE has been sent, or the inbound one admitted. */
  protected initiated(changes: Partial<Pick<CallRow, 'sip_call_id' | 'carrier_id' | 'application_id'>>): void {
    const at_ms = this.ctx.clock.now()
    this.row = { ...this.row, ...changes, initiated_at: iso(at_ms) }
    this.#writes.step({ step: 'initiated', at_ms, changes })
  }

  protected ringing(): void {
    if (this.#ringing || this.answered) return
    this.#ringing = true
    const at_ms = this.ctx.clock.now()
    this.row = { ...this.row, status: 'ringing', ringing_at: iso(at_ms) }
    this.#writes.step({ step: 'ringing', at_ms })
  }

  /** Starts the duration of the call. `limit.seconds` is null when the call has no limit. */
  protected answeredNow(limit: {
    readonly seconds: number | null
    readonly reason: 'max_duration' | 'spend_exhausted' | null
  }) {
    if (this.answered || this.ended) return
    const at_ms = this.ctx.clock.now()
    this.time.begin()
    this.row = { ...this.row, status: 'in-progress', answered_at: iso(at_ms) }
    const untold = detectsFirst(this.request)
    if (untold) this.#untold_ms = at_ms
    this.#writes.step({ step: 'answered', at_ms, ...(untold ? { untold } : {}) })
    this.#settle()
    this.time.limitTo(limit.seconds, limit.reason ?? 'max_duration')
  }

  elapsedMs(): number {
    return this.time.elapsed_ms
  }

  watchMedia(watcher: (event: MediaEvent) => void): () => void {
    this.#mediaWatchers.add(watcher)
    return () => this.#mediaWatchers.delete(watcher)
  }

  /** Stores the media samples of each leg, and ends a call whose legs are all silent (design section 4). */
  protected mediaSample(leg: Leg, event: MediaEvent): void {
    for (const watcher of this.#mediaWatchers) watcher(event)
    if (event.event === 'leg.stats') {
      const now_ms = this.ctx.clock.now()
      const { leg_id, stats } = event
      void this.persist(trx => addMediaQuality(trx, { call_sid: this.sid, leg_id, stats }, now_ms))
    }
    if (event.event === 'leg.sdp_notes')
      this.event('warning', null, { reason: 'sdp_forgiven', leg_id: leg.id, notes: event.notes })
    if (event.event === 'leg.srtp_failed') this.event('warning', null, { reason: 'srtp_failed', leg_id: leg.id })
    if (event.event !== 'leg.silent' || !this.answered) return
    const { partner } = this.pairing
    const legs = [...this.legs(), ...(partner ? [partner.leg] : [])].filter(other => other.answered && !other.ended)
    if (legs.length > 0 && legs.every(other => other.silent_ms >= this.ctx.config.dead_call_seconds * 1000))
      void this.end({ cause: 'media_timeout' })
  }

  /** Stores the final figures of a leg. */
  protected legMeasured({ carrier_id }: Leg, figures: LegFigures): void {
    this.#measured.push(figures)
    this.ctx.metrics.measured(figures)
    this.#writes.step({ step: 'leg', figures, carrier_id })
  }

  /** Returns the figures of other legs than these: targets that did not answer, and legs that were replaced. */
  protected otherLegs(...main: readonly (Leg | null)[]): { others?: object[] } {
    const others = this.#measured.filter(({ leg_id }) => !main.some(leg => leg?.id === leg_id))
    const heard = others.filter(({ packets_received, packets_sent }) => packets_received + packets_sent > 0)
    return heard.length === 0 ? {} : { others: heard.map(figures => legSummary({ figures, codec: null }) ?? {}) }
  }

  end(facts: Omit<EndFacts, 'answered'>): Promise<void> {
    this.#ending ??= this.#end(this.#endingOf(facts), facts.headers ?? {})
    return this.#ending
  }

  #endingOf(facts: Omit<EndFacts, 'answered'>): Ending {
    const final = ending({ ...facts, answered: this.answered })
    return this.#failure === null ? final : { ...final, reason: final.reason ?? 'document_failed' }
  }

  /** Sets the code and headers of the refusal to an unanswered caller. */
  protected refusing(_final: Ending, _headers: Readonly<Record<string, string>>): void {
    // A call that we placed has no caller's INVITE to refuse.
  }

  async #end(final: Ending, headers: Readonly<Record<string, string>>): Promise<void> {
    this.#final = final
    const ended_ms = this.ctx.clock.now()
    const duration_seconds = Math.floor(this.elapsedMs() / 1000)
    this.time.stop()
    this.row = { ...this.row, status: final.status, sip_code: final.sip_code, duration_seconds }
    this.refusing(final, headers)
    const legs = this.legs()
    const bye_reason = passedReason(headers) ?? final.bye_reason
    this.pairing.unpair()?.call.partnerLeft(headers)
    this.stop(bye_reason, headers)
    this.#settle()
    await Promise.all(legs.map(leg => leg.end(bye_reason)))
    this.tellAnswer({})
    if (this.#lastFacts.length > 0)
      await Promise.race([Promise.all(this.#lastFacts), delay(this.ctx.clock, LAST_FACTS_MS)])
    await this.#finish(final, ended_ms, duration_seconds)
    await this.session.release()
    this.ctx.calls.remove(this.sid)
    this.ctx.metrics.ended({
      ...this.row,
      project_id: this.project_id,
      status: final.status,
      seconds: duration_seconds,
    })
    this.ctx.bus.ring('calls')
    this.log.info(
      { status: final.status, sip_code: final.sip_code, reason: final.reason, duration_seconds },
      'call ended',
    )
    for (const listener of this.#endListeners) listener(final)
  }

  /** Writes status, CDR, slots, money and the last callback in one transaction, with all pending steps. */
  async #finish(final: Ending, ended_ms: number, duration_seconds: number): Promise<void> {
    const media = this.mediaSummary()
    const facts = {
      ending: final,
      ended_ms,
      duration_seconds,
      pdd_ms: this.pddMs(),
      media: media === null ? null : JSON.stringify(media),
      extra: { ...this.#at_end, ...failureParameters(this.#failure) },
    }
    const written = await this.#writes.end({ step: 'end', facts })
    if (written?.end) this.row = { ...this.row, ...written.end }
  }
}

/** Reports whether the callback of the answer waits for machine detection (voice-compat.md §6 and §12.4). */
const detectsFirst = ({ machine_detection: detection, send_digits }: CallRequest): boolean =>
  !!detection && detection['asynchronous'] !== true && !send_digits

const failureParameters = (failure: DocumentFailure | null): Record<string, string> =>
  failure === null ? {} : { ErrorCode: String(failure.number), ErrorMessage: failure.detail }

/**
 * Returns the causes of a peer's Reason header for the other leg (RFC 3326), without the peer's text, which may name
 * hosts.
 */
export function passedReason(headers: Readonly<Record<string, string>>): string | null {
  const given = headers['reason'] ?? headers['Reason'] ?? ''
  const causes = readReasons(given).filter(({ protocol }) => protocol === 'Q.850' || protocol === 'SIP')
  if (causes.length === 0) return null
  return causes
    .slice(0, 2)
    .map(({ protocol, cause }) =>
      protocol === 'SIP' && cause === 200 ? COMPLETED_ELSEWHERE : `${protocol};cause=${cause}`,
    )
    .join(', ')
}
