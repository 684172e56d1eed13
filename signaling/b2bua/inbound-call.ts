import type { Ending } from '../../core/domain/calls/endings.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import { COMPLETED_ELSEWHERE, readSeconds } from '../../core/domain/sip/values.ts'
import { LONGEST_TIMER_MS, type Timer } from '../../core/runtime/clock.ts'
import type { CallRow } from '../../core/state/calls/running-calls.ts'
import type { DocumentTarget, Entry } from '../../markup/interpreter/types.ts'
import {
  CallerGone,
  Cancelled,
  type Credentials,
  type InboundInvite,
  type InboundRequest,
  type SipResponse,
} from '../drachtio/types.ts'
import { kindOfCaller } from './browser.ts'
import { Call, passedReason } from './call.ts'
import type { CallContext } from './context.ts'
import { Hunt, type HuntHop, type HuntListener, type HuntOutcome } from './hunt.ts'
import { InboundLeg } from './inbound-leg.ts'
import type { KeyWay, Leg, LegListener } from './leg.ts'
import { type LegPolicy, MediaRefusal, type MediaSession } from './media.ts'
import { passMessage } from './message.ts'
import type { OutboundLeg } from './outbound-leg.ts'
import { passNotify } from './refer-passing.ts'
import { refusalCode, warning } from './refusal.ts'
import { type Replacement, replaceLeg } from './replacement.ts'
import { Ringback } from './ringback.ts'
import type { CallScript, PolicyRecording, ScriptEntry } from './script-host.ts'
import { type SecondRoute, takeSecondRoute } from './second-route.ts'
import { causeOfLeg, legSummary } from './summary.ts'
import { transferAsked, transfersRefused } from './transfer.ts'

export interface Limits {
  /** Null: the policy requires no recording, or no party has consented. */
  readonly recording?: PolicyRecording | null
  readonly max_duration_seconds: number | null
  readonly max_duration_reason: 'max_duration' | 'spend_exhausted' | null
  readonly paid_until_seconds: number | null
}

/** What to do with an admitted inbound call. */
export type CallPlan =
  | { readonly kind: 'script'; readonly entry: ScriptEntry }
  | { readonly kind: 'bridge'; readonly hops: readonly HuntHop[]; readonly second: SecondRoute | null }
  | { readonly kind: 'replace'; readonly replacement: Replacement }

const SETUP_LIMIT_MS = 180_000
/** How long announced early media may stay silent before the caller hears a ring tone. */
const EARLY_SILENCE_MS = 1000

/** A call that a peer sent us: an A leg with either a script on it or a B leg bridged to it. */
export class InboundCall extends Call {
  readonly #a: InboundLeg
  readonly #limits: Limits
  #hunt: Hunt | null = null
  #b: Leg | null = null
  #script: CallScript | null = null
  /** Ends the call when the INVITE expires before its answer. */
  #expiry: Timer | null = null
  #bridged: 'relay' | 'transcode' | null = null
  readonly #ringback: Ringback
  #earlySilence: Timer | null = null

  constructor(
    ctx: CallContext,
    options: {
      readonly row: CallRow
      readonly session: MediaSession
      readonly invite: InboundInvite
      readonly limits: Limits
      /** The trunk of the calling peer; null for carriers and clients. */
      readonly peer_trunk_id?: string | null
      /** Answers the caller's challenges to our requests in its dialog. */
      readonly auth?: Credentials
    },
  ) {
    super(ctx, options.row, options.session)
    this.#limits = options.limits
    this.#a = new InboundLeg(ctx, {
      id: `${this.sid}-a`,
      session: options.session,
      listener: this.#listener(),
      log: this.log,
      invite: options.invite,
      auth: options.auth,
      trunk_id: options.peer_trunk_id ?? null,
      carrier_id: options.row.origin === 'carrier' ? options.row.carrier_id : null,
      foreign: options.row.foreign_caller === 1,
    })
    this.#ringback = new Ringback(this.#a)
    options.invite.onCancel(headers => void this.end({ cause: 'caller_hung_up', headers: reasonOnly(headers) }))
  }

  get leg(): InboundLeg {
    return this.#a
  }

  /** Replaces the running document; false when none runs. */
  redirect(entry: Entry, fallback?: DocumentTarget): boolean {
    return this.#script?.update(entry, fallback) ?? false
  }

  /** Opens the caller's media and starts the plan. A failure ends the call. */
  async begin(policy: LegPolicy, plan: CallPlan): Promise<void> {
    this.#expire()
    try {
      await this.#a.openMedia(policy, kindOfCaller(this.#a.invite))
      if (!this.#a.late) await this.#a.takeOffer(this.#a.invite.content().sdp)
    } catch (error) {
      await this.#cannot(error)
      return
    }
    if (this.ended) return
    if (plan.kind === 'script') this.#runScript(plan.entry)
    else if (plan.kind === 'replace') await this.#replace(plan.replacement)
    else this.#bridge(plan)
  }

  override get ringingLeg(): OutboundLeg | null {
    return this.answered || this.ended ? null : (this.#hunt?.leg ?? null)
  }

  override get settling(): readonly Leg[] {
    return this.answered || this.ended || !this.#b?.accepted ? [] : this.legs()
  }

  /** Another telephone takes the call while its target rings: ends the target's INVITE, and answers the caller. */
  async pickedUp(by: Leg): Promise<void> {
    void this.#hunt?.end(COMPLETED_ELSEWHERE)
    this.#a.prefer = by
    void this.#stopRinging()
    await this.#answer().catch(() => undefined)
    if (this.ended) return
    this.#answeredNow()
    const { recording } = this.#limits
    if (recording) this.ctx.recording.byPolicy({ call: this, leg: this.#a }, by, recording)
  }

  /** Sends the caller its 200. @throws when it cannot be sent; the call has ended then */
  async #answer(): Promise<void> {
    this.#expiry?.cancel()
    await this.#a.answer().catch(async error => {
      await this.#unanswered(error)
      throw error
    })
  }

  /** Starts the time after which an unanswered INVITE is refused with 487 (RFC 3261 §13.3.1). */
  #expire(): void {
    const ms = (readSeconds(this.#a.invite.header('expires')) ?? 0) * 1000
    if (ms === 0) return
    this.#expiry = this.ctx.clock.after(Math.min(ms, LONGEST_TIMER_MS), () => void this.end({ cause: 'ring_timeout' }))
  }

  async #replace(replacement: Replacement): Promise<void> {
    const answer = async (): Promise<void> => {
      await this.#answer()
      this.#answeredNow()
    }
    try {
      await replaceLeg({ call: this, leg: this.#a }, answer, replacement)
    } catch (error) {
      await this.#unanswered(error)
    }
  }

  protected legs(): Leg[] {
    const legs: Leg[] = [this.#a]
    if (this.#b) legs.push(this.#b)
    return legs
  }

  protected stop(bye_reason: string | null, headers: Readonly<Record<string, string>>): void {
    this.#script?.legEnded(headers)
    this.#expiry?.cancel()
    this.#earlySilence?.cancel()
    void this.#hunt?.end(bye_reason)
  }

  protected hungUp(leg: Leg): 'caller_hung_up' | 'called_hung_up' {
    return leg === this.#a ? 'caller_hung_up' : 'called_hung_up'
  }

  protected mediaSummary(): object | null {
    return {
      a: legSummary(this.#a),
      b: this.#b ? legSummary(this.#b) : null,
      mode: this.#bridged,
      ...this.otherLegs(this.#a, this.#b),
    }
  }

  protected pddMs(): number | null {
    return this.#hunt?.pdd_ms ?? null
  }

  protected override refusing(final: Ending, headers: Readonly<Record<string, string>>): void {
    const passed = passedReason(headers)
    const own = final.reason ? sipRefusal(final.reason).headers : {}
    this.#a.refuseWith(final.sip_code, {
      ...(final.ended_by === 'called' ? {} : own),
      ...(passed ? { Reason: passed } : {}),
      ...extra(headers),
    })
  }

  // ---------------------------------------------------------------------------------------------------------- script

  #runScript(entry: ScriptEntry): void {
    this.#a.ring()
    this.#script = this.ctx.scripts.create(
      {
        call: this,
        leg: this.#a,
        direction: 'inbound',
        answer: async () => {
          await this.#answer()
          this.#answeredNow()
        },
        reject: (sip_code, status) => void this.end({ cause: 'rejected', sip_code, status, reason: null }),
        hangup: () => void this.end({ cause: 'script' }),
        early: () => this.#a.early(),
        ring: () => this.#a.ring(),
      },
      entry,
    )
    this.#script.start()
  }

  // ---------------------------------------------------------------------------------------------------------- bridge

  #bridge({ hops, second }: Extract<CallPlan, { kind: 'bridge' }>): void {
    const listener: HuntListener = {
      ...this.#listener(),
      attempt: hop => {
        const { carrier_id } = hop
        this.#a.prefer = this.#hunt?.leg ?? null
        if (carrier_id !== null) this.initiated({ carrier_id })
      },
      ringing: (_leg, response) => this.#ringing(response),
      early: leg => this.#early(leg),
      answered: leg => void this.#farAnswered(leg),
      failed: outcome => void this.#farFailed(outcome),
    }
    this.#hunt = new Hunt(this.ctx, {
      call_sid: this.sid,
      hops,
      session: this.session,
      listener,
      keep: step => this.keepAttempt(step),
      ring_ms: SETUP_LIMIT_MS,
      log: this.log,
      prefer: this.#a,
      next: second && (() => this.#goSecond(second)),
    })
    this.#hunt.start()
  }

  /** Follows the second route: to more targets, or to the document of an application. */
  async #goSecond(second: SecondRoute): Promise<readonly HuntHop[] | 'taken'> {
    const found = await takeSecondRoute(this, second)
    if (found.kind === 'hops') return found.hops
    if (found.kind !== 'script' || this.ended) return []
    this.initiated({ application_id: found.application_id })
    this.#runScript(found.entry)
    return 'taken'
  }

  #ringing(response: SipResponse): void {
    this.ringing()
    const { status } = response
    this.#a.ring(status === 181 || status === 182 || status === 183 ? status : 180)
  }

  async #early(leg: OutboundLeg): Promise<boolean> {
    this.ringing()
    this.#b = leg
    this.#a.prefer = leg
    try {
      if (!(await this.#a.early())) {
        this.#a.ring()
        return false
      }
      await this.#join(leg)
      this.#ringIfSilent(leg)
      return true
    } catch (error) {
      if (!this.ended) this.log.info({ err: error }, 'early media could not be passed on')
      this.#a.ring()
      return false
    }
  }

  /** Plays a ring tone when the far end announces early media and sends none: the caller would hear silence. */
  #ringIfSilent(leg: OutboundLeg): void {
    this.#earlySilence ??= this.ctx.clock.after(EARLY_SILENCE_MS, () => {
      if (!leg.heard && !leg.ended && !this.answered) this.#ringback.start(this.row.to_number)
    })
  }

  #stopRinging(): Promise<void> {
    this.#earlySilence?.cancel()
    return this.#ringback.stop()
  }

  async #farAnswered(leg: OutboundLeg): Promise<void> {
    this.#b = leg
    this.#a.prefer = leg
    void this.#stopRinging()
    try {
      await this.#answer()
      if (this.ended) return
      this.#answeredNow()
      await this.#join(leg)
      const { recording } = this.#limits
      if (recording) this.ctx.recording.byPolicy({ call: this, leg: this.#a }, leg, recording)
    } catch (error) {
      await this.#unanswered(error)
    }
  }

  async #join(leg: Leg): Promise<void> {
    const { mode } = await this.session.hub.request('bridge', { a: this.#a.id, b: leg.id })
    this.#bridged = mode
  }

  #farFailed(outcome: HuntOutcome): Promise<void> {
    if (outcome.link_lost) return this.end({ cause: 'node_lost' })
    return this.end({
      cause:
        outcome.reason === 'target_unreachable'
          ? 'unreachable'
          : outcome.reason === 'no_answer' && outcome.code === 487
            ? 'ring_timeout'
            : 'refused',
      // A 487 would report that the INVITE's Expires has run out.
      sip_code: outcome.reason === 'no_answer' && outcome.code === 487 ? 480 : outcome.code,
      status: outcome.status,
      reason: outcome.reason,
      headers: reasonOnly(outcome.headers),
    })
  }

  // ------------------------------------------------------------------------------------------------------------ both

  #answeredNow(): void {
    const { max_duration_seconds, max_duration_reason, paid_until_seconds } = this.#limits
    this.answeredNow({ seconds: max_duration_seconds, reason: max_duration_reason })
    this.time.payAsItRuns(paid_until_seconds)
  }

  #listener(): LegListener {
    return {
      ended: (leg, { cause, headers }) => {
        if (leg === this.#a || leg === this.#b)
          this.legEnded(leg, causeOfLeg(cause, leg === this.#a ? 'a' : 'b', reasonOnly(headers)))
      },
      digit: (leg, digit, by) => this.#digit(leg, digit, by),
      refer: (leg, request) => this.#refer(leg, request),
      notify: (leg, request) => {
        if (passNotify({ call: this, leg }, request)) return
        if (this.#script && leg === this.#a) this.#script.notified(request)
        else request.respond(200)
      },
      message: (leg, request) => void passMessage({ call: this, leg }, request),
      measured: (leg, figures) => this.legMeasured(leg, figures),
      held: (leg, held) =>
        this.event('state', null, { what: held ? 'held' : 'resumed', leg: leg === this.#a ? 'a' : 'b' }),
      media: (leg, event) => {
        this.mediaSample(leg, event)
        if (event.event === 'leg.first_packet' && leg === this.#b) void this.#stopRinging()
        if (leg === this.#a) this.#script?.media(event)
      },
    }
  }

  #digit(leg: Leg, digit: string, by: KeyWay): void {
    if (!this.#script) this.passKey(leg, digit, by)
    else if (leg === this.#a) this.#script.digit(digit, by)
  }

  #refer(leg: Leg, request: InboundRequest): void {
    if (!this.#script) transferAsked({ call: this, leg }, request)
    else if (transfersRefused({ call: this, leg }, request)) return
    else if (leg === this.#a) this.#script.referred('self', request)
    else request.respond(603)
  }

  /** Ends a call whose caller could not be answered, unless it has ended. */
  async #unanswered(error: unknown): Promise<void> {
    if (this.ended) return
    if (error instanceof Cancelled) await this.end({ cause: 'caller_hung_up' })
    // As when the 200 is sent and lost.
    else if (error instanceof CallerGone) await this.end({ cause: 'no_ack' })
    else await this.#cannot(error)
  }

  /** Ends a call whose setup failed. When the media worker refused it, the caller gets the reason. */
  #cannot(error: unknown): Promise<void> {
    const code = refusalCode(error)
    if (!(error instanceof MediaRefusal)) {
      this.log.error({ err: error }, 'could not set up the call')
      return this.end({ cause: 'internal' })
    }
    if (code === 503) {
      this.log.error({ detail: error.message }, 'media could not set up the call')
      return this.end({ cause: 'media_unavailable' })
    }
    const reason = error.reason === 'srtp_required' ? 'srtp_required' : 'no_common_codec'
    return this.end({ cause: 'not_admitted', sip_code: code, reason, headers: warning(error) })
  }
}

const reasonOnly = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  headers['reason'] ? { reason: headers['reason'] } : {}

const extra = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'reason' && name !== 'Reason'))
