import type { Log } from '../../core/runtime/log.ts'
import type { Dialog, DialogHandler, Headers, InboundRequest } from '../drachtio/types.ts'
import type { Context } from './context.ts'
import { keyOfInfo } from './dtmf-info.ts'
import {
  type LegPolicy,
  type LegStats,
  type MediaEvent,
  type MediaKind,
  MediaRefusal,
  type MediaSession,
} from './media.ts'
import { type OfferState, offerStep } from './offer-answer.ts'
import { answerHeaders, intervalTooSmall } from './session-timer.ts'

/** Why a leg ended that we did not end. */
export type LegCause = 'hung_up' | 'session_expired' | 'no_ack' | 'media_unavailable' | 'internal'

export interface LegListener {
  ended(leg: Leg, facts: { readonly cause: LegCause; readonly headers: Headers }): void
  /** `info`: signalled, so that no bridge has passed it on. */
  digit(leg: Leg, digit: string, by: 'media' | 'info'): void
  /** Wants a transfer; answers the request. */
  refer(leg: Leg, request: InboundRequest): void
  /** About a REFER of ours. */
  notify(leg: Leg, request: InboundRequest): void
  held(leg: Leg, held: boolean): void
  media(leg: Leg, event: MediaEvent): void
}

const ALLOW = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, REFER, NOTIFY'
/** 64 x T1: after that the peer has given up its ACK (RFC 3261 §13.3.1.4). */
const ACK_LIMIT_MS = 32_000

/** One side of a call once it has a dialog: what its peer may do in it, and its media. */
export class Leg {
  readonly id: string
  readonly session: MediaSession
  readonly log: Log
  protected readonly ctx: Context
  protected listener: LegListener
  protected dialog: Dialog | null = null
  #answered = false
  #ended = false
  #held = false
  #offers: OfferState = 'stable'
  #ackTimer: { cancel(): void } | null = null
  #onLateAnswer: ((sdp: string) => void) | null = null
  #stats: LegStats | null = null
  #codec: string | null = null
  #silent_ms = 0
  #received = 0
  #mediaOpen = false
  #closing: Promise<void> | null = null
  /** The leg whose codec ours should follow, so that their bridge is a relay. */
  prefer: Leg | null = null

  constructor(ctx: Context, options: { id: string; session: MediaSession; listener: LegListener; log: Log }) {
    this.ctx = ctx
    this.id = options.id
    this.session = options.session
    this.listener = options.listener
    this.log = options.log.child({ leg_id: options.id })
  }

  get answered(): boolean {
    return this.#answered
  }

  get ended(): boolean {
    return this.#ended
  }

  get held(): boolean {
    return this.#held
  }

  get codec(): string | null {
    return this.#codec
  }

  get stats(): LegStats | null {
    return this.#stats
  }

  /** How long nothing has been heard; 0 while the peer sends or may be silent. */
  get silent_ms(): number {
    return this.#held ? 0 : this.#silent_ms
  }

  get settled(): boolean {
    return this.#codec !== null
  }

  get sip_call_id(): string | null {
    return this.dialog?.call_id ?? null
  }

  get sipDialog(): Dialog | null {
    return this.dialog
  }

  /** From now on somebody else is told: a child that became a call of its own. */
  handTo(listener: LegListener): void {
    this.listener = listener
  }

  /** @throws MediaRefusal */
  async openMedia(policy: LegPolicy, kind: MediaKind = 'rtp'): Promise<void> {
    await this.session.openLeg(this.id, policy, kind, event => this.#onMedia(event))
    this.#mediaOpen = true
    if (this.#ended) await this.#closeMedia()
  }

  /** @throws MediaRefusal */
  async takeOffer(sdp: string): Promise<void> {
    const offer = await this.session.hub.request('leg.remote_offer', { leg_id: this.id, sdp })
    this.setHeld(offer.hold)
  }

  /** @throws MediaRefusal */
  async makeAnswer(): Promise<string> {
    const answer = await this.session.hub.request('leg.local_answer', { leg_id: this.id, ...this.#preferred() })
    this.#codec = answer.codec
    return answer.sdp
  }

  /** @throws MediaRefusal */
  async makeOffer(): Promise<string> {
    const { sdp } = await this.session.hub.request('leg.local_offer', { leg_id: this.id, ...this.#preferred() })
    return sdp
  }

  /** @throws MediaRefusal */
  async takeAnswer(sdp: string): Promise<void> {
    const answer = await this.session.hub.request('leg.remote_answer', { leg_id: this.id, sdp })
    this.#codec = answer.codec
    this.setHeld(answer.hold)
  }

  /** DTMF of a peer that sends it by INFO, towards this leg's own far end. */
  sendDigits(send_id: string, digits: string): Promise<unknown> {
    return this.session.hub.request('digits.send', { leg_id: this.id, send_id, digits })
  }

  protected confirmed(dialog: Dialog): void {
    this.dialog = dialog
    this.#answered = true
    this.#silent_ms = 0
  }

  /** Resolves with the answer that the ACK brings. The SIP server ends the dialog when no ACK comes. */
  protected lateAnswer(): Promise<string> {
    return new Promise(resolve => {
      this.#offers = 'awaiting_ack'
      this.#onLateAnswer = resolve
    })
  }

  /**
   * Ends this leg once; `reason` is the value of a Reason header. Subclasses end what is not a dialog yet. Whoever
   * calls it, even after the far end has hung up, waits until the media is closed and its figures are there.
   */
  async end(reason: string | null): Promise<void> {
    if (this.#ended) return this.#closeMedia()
    this.#ended = true
    this.#ackTimer?.cancel()
    const headers = reason === null ? {} : { Reason: reason }
    this.endSignaling(headers)
    await this.#closeMedia()
  }

  protected endSignaling(headers: Headers): void {
    void this.dialog?.bye(headers)
  }

  readonly handler: DialogHandler = (request, facts) => {
    if (request.method === 'BYE') {
      request.respond(200)
      return this.#farEnd(causeOf(facts), request.headers)
    }
    if (this.#ended) return request.respond(481)
    switch (request.method) {
      case 'INVITE':
      case 'UPDATE':
        return void this.#reoffered(request)
      case 'ACK':
        return this.#acknowledged(request)
      case 'INFO':
        return this.#info(request)
      case 'REFER':
        return this.listener.refer(this, request)
      case 'NOTIFY':
        return this.listener.notify(this, request)
      case 'PRACK':
      case 'OPTIONS':
        return request.respond(200, { headers: { Allow: ALLOW } })
      case 'SUBSCRIBE':
        return request.respond(489)
      default:
        return request.respond(405, { headers: { Allow: ALLOW } })
    }
  }

  #farEnd(cause: LegCause, headers: Headers): void {
    if (this.#ended) return
    this.#ended = true
    this.#ackTimer?.cancel()
    void this.#closeMedia()
    this.listener.ended(this, { cause, headers })
  }

  /** A fault that makes the leg unusable: it is ended with BYE, and the owner told. */
  protected fail(cause: LegCause): void {
    if (this.#ended) return
    void this.end(null)
    this.listener.ended(this, { cause, headers: {} })
  }

  /**
   * Re-INVITE and UPDATE: every offer that we can answer is answered; a refused one leaves all as it was (RFC 3261
   * §14.2).
   */
  async #reoffered(request: InboundRequest): Promise<void> {
    const min_se = intervalTooSmall(request)
    if (min_se !== null) return request.respond(422, { headers: { 'Min-SE': min_se } })
    const timer = answerHeaders(request)
    if (request.method === 'UPDATE' && request.body === '') return request.respond(200, { headers: timer })
    const step = offerStep(this.#offers, request.body === '' ? 'remote_empty' : 'remote_offer')
    if (!step.allowed)
      return request.respond(step.sip_code, step.sip_code === 500 ? { headers: { 'Retry-After': '2' } } : {})
    this.#offers = step.state
    try {
      if (request.body === '') {
        const sdp = await this.makeOffer()
        this.#offers = 'awaiting_ack'
        this.#onLateAnswer = answer => void this.#lateReanswer(answer)
        this.#ackTimer = this.ctx.clock.after(ACK_LIMIT_MS, () => void this.#rollback())
        return request.respond(200, { headers: { ...timer, Allow: ALLOW }, body: sdp })
      }
      await this.takeOffer(request.body)
      const sdp = await this.makeAnswer()
      this.#offers = offerStep(this.#offers, 'answered').state
      request.respond(200, { headers: { ...timer, Allow: ALLOW }, body: sdp })
    } catch (error) {
      await this.#rollback()
      request.respond(refusalCode(error), { headers: warning(error) })
    }
  }

  #acknowledged(request: InboundRequest): void {
    if (this.#offers !== 'awaiting_ack') return
    this.#ackTimer?.cancel()
    this.#offers = offerStep(this.#offers, 'ack').state
    const take = this.#onLateAnswer
    this.#onLateAnswer = null
    take?.(request.body)
  }

  async #lateReanswer(sdp: string): Promise<void> {
    try {
      await this.takeAnswer(sdp)
    } catch (error) {
      this.log.info({ err: error }, 'the answer in an ACK cannot be used; the media stays as it was')
      await this.#rollback()
    }
  }

  async #rollback(): Promise<void> {
    this.#offers = offerStep(this.#offers, 'refused').state
    this.#onLateAnswer = null
    await this.session.hub.request('leg.rollback', { leg_id: this.id }).catch(() => undefined)
  }

  #info(request: InboundRequest): void {
    const digit = keyOfInfo(request)
    if (digit !== null) {
      request.respond(200)
      this.listener.digit(this, digit, 'info')
    } else request.respond(request.body === '' ? 200 : 415)
  }

  #onMedia(event: MediaEvent): void {
    if (this.#ended) return
    if (event.event === 'leg.silent') this.#silent_ms = event.for_ms
    else if (event.event === 'leg.first_packet') this.#silent_ms = 0
    else if (event.event === 'leg.stats') {
      if (event.stats.packets_received > this.#received) this.#silent_ms = 0
      this.#received = event.stats.packets_received
    }
    if (event.event === 'dtmf') this.listener.digit(this, event.digit, 'media')
    else this.listener.media(this, event)
  }

  protected setHeld(held: boolean): void {
    if (held === this.#held) return
    this.#held = held
    this.#silent_ms = 0
    if (this.#answered) this.listener.held(this, held)
  }

  #preferred(): { prefer_leg?: string } {
    return this.prefer && !this.prefer.ended ? { prefer_leg: this.prefer.id } : {}
  }

  #closeMedia(): Promise<void> {
    if (this.#mediaOpen)
      this.#closing ??= this.session.closeLeg(this.id).then(stats => {
        this.#stats = stats
      })
    return this.#closing ?? Promise.resolve()
  }
}

const causeOf = (facts: { unsolicited: boolean; reason: string | null }): LegCause => {
  if (!facts.unsolicited) return 'hung_up'
  if (/session timer/i.test(facts.reason ?? '')) return 'session_expired'
  return /ack timeout/i.test(facts.reason ?? '') ? 'no_ack' : 'hung_up'
}

/** SIP code for what the media worker refused. */
export const refusalCode = (error: unknown): number =>
  error instanceof MediaRefusal
    ? error.reason === 'media_unavailable' || error.reason === 'internal'
      ? 503
      : 488
    : 500

export const warning = (error: unknown): Record<string, string> =>
  error instanceof MediaRefusal
    ? {
        Warning: `399 strowger "${`${error.reason}: ${error.detail}`.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?')}"`,
      }
    : {}
