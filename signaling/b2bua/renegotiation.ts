import { type Clock, delay, type Timer } from '../../core/runtime/clock.ts'
import type { InboundRequest } from '../drachtio/types.ts'
import type { Leg } from './leg.ts'
import { ALLOW } from './methods.ts'
import { type OfferState, offerStep } from './offer-answer.ts'
import { refusalCode, refusedBody, warning } from './refusal.ts'
import { SessionRefresh } from './session-refresh.ts'
import { answerHeaders, intervalTooSmall } from './session-timer.ts'

/** 64 x T1: no ACK comes later than this (RFC 3261 §13.3.1.4). */
const ACK_LIMIT_MS = 32_000
const GLARE_TRIES = 5
/** RFC 3261 §14.1: the owner of the Call-ID waits longer, so that one of the two re-INVITEs succeeds. */
const GLARE_OF_CALLER_MS = [2100, 4000] as const
const GLARE_OF_CALLED_MS = [0, 2000] as const

/** Runs the offer/answer exchanges that follow the first one in a leg's dialog, one at a time. */
export class Renegotiation {
  readonly #leg: Leg
  readonly #clock: Clock
  #state: OfferState = 'stable'
  #ackTimer: Timer | null = null
  #onLateAnswer: ((sdp: string) => void) | null = null

  /** Whose offer of the INVITE itself has no answer yet (RFC 3311 §5.2). */
  first: 'ours' | 'theirs' | null = null

  /** Refreshes the session of the dialog. */
  readonly session: SessionRefresh

  constructor(leg: Leg, clock: Clock) {
    this.#leg = leg
    this.#clock = clock
    this.session = new SessionRefresh(leg, clock, () => this.#reinvite())
  }

  /** For an INVITE without an offer, whose 200 carries ours: resolves with the answer in the ACK. */
  lateAnswer(): Promise<string> {
    return new Promise(resolve => {
      this.#state = 'awaiting_ack'
      this.#onLateAnswer = resolve
    })
  }

  /**
   * Answers a re-INVITE, an UPDATE, or a PRACK with an offer. A refused offer leaves the session unchanged
   * (RFC 3261 §14.2).
   */
  async received(request: InboundRequest): Promise<void> {
    const min_se = intervalTooSmall(request)
    if (min_se !== null) return request.respond(422, { headers: { 'Min-SE': min_se } })
    const { sdp: offer, refused } = request.content()
    if (refused) return request.respond(415, { headers: refusedBody(refused) })
    const timer = request.method === 'PRACK' ? {} : answerHeaders(request)
    const refreshed = (): void => {
      if (request.method === 'PRACK' || !this.#leg.answered) return
      this.session.allowed(request.header('allow'))
      this.session.agreed(timer['Session-Expires'] ?? null, 'uas')
    }
    if (request.method === 'UPDATE' && offer === '') {
      refreshed()
      return request.respond(200, { headers: timer })
    }
    const step = offerStep(this.first ?? this.#state, offer === '' ? 'remote_empty' : 'remote_offer')
    if (!step.allowed)
      return request.respond(step.sip_code, step.sip_code === 500 ? { headers: { 'Retry-After': '2' } } : {})
    this.#state = step.state
    const headers = { ...timer, Allow: ALLOW }
    try {
      if (offer === '') {
        const sdp = await this.#leg.makeOffer()
        this.#state = 'awaiting_ack'
        this.#onLateAnswer = answer => void this.#lateReanswer(answer)
        this.#ackTimer = this.#clock.after(ACK_LIMIT_MS, () => void this.#rollback())
        refreshed()
        return request.respond(200, { headers, body: sdp, unsent: () => this.#overtaken() })
      }
      await this.#leg.takeOffer(offer)
      const sdp = await this.#leg.makeAnswer()
      this.#state = offerStep(this.#state, 'answered').state
      refreshed()
      // The peer has cancelled its offer meanwhile, so it goes on with the session that our media has left.
      const unsent = (): void => void (request.method === 'INVITE' && this.begin())
      request.respond(200, { headers, body: sdp, unsent })
    } catch (error) {
      await this.#rollback()
      request.respond(refusalCode(error), { headers: warning(error) })
    }
  }

  /** The peer has cancelled its re-INVITE without an offer, so no ACK brings an answer to ours. */
  #overtaken(): void {
    this.#ackTimer?.cancel()
    void this.#rollback()
  }

  /** Sends a re-INVITE and reports whether the peer accepted it. Glare is retried after the delay of RFC 3261 §14.1. */
  async begin(): Promise<boolean> {
    for (let tries = 0; tries < GLARE_TRIES && !this.#leg.ended; tries++) {
      const code = await this.#reinvite()
      if (code === 408 || code === 481) this.#leg.fail('hung_up')
      if (code !== 491) return code >= 200 && code < 300
      const [least, most] = this.#leg.callingDialog ? GLARE_OF_CALLER_MS : GLARE_OF_CALLED_MS
      const pause_ms = least + 10 * Math.floor((Math.random() * (most - least)) / 10)
      await delay(this.#clock, pause_ms)
    }
    return false
  }

  acknowledged(ack: InboundRequest): void {
    if (this.#state !== 'awaiting_ack') return
    this.#ackTimer?.cancel()
    this.#state = offerStep(this.#state, 'ack').state
    const take = this.#onLateAnswer
    this.#onLateAnswer = null
    take?.(ack.content().sdp)
  }

  /** Cancels the timers; for a leg that has ended. */
  stop(): void {
    this.session.stop()
    this.#ackTimer?.cancel()
  }

  /** Returns the final code of one re-INVITE; 491 without sending it when another exchange is open. */
  async #reinvite(): Promise<number> {
    const dialog = this.#leg.sipDialog
    const step = offerStep(this.#state, 'local_offer')
    if (!dialog || !step.allowed) return 491
    this.#state = step.state
    try {
      const headers = { Allow: ALLOW, ...this.session.headers, 'Content-Type': 'application/sdp' }
      const answer = await dialog.request('INVITE', { headers, body: await this.#leg.makeOffer() })
      const { sdp } = answer.content()
      if (answer.status >= 300 || sdp === '') {
        await this.#rollback()
        return answer.status >= 300 ? answer.status : 488
      }
      this.session.allowed(answer.header('allow'))
      this.session.agreed(answer.header('session-expires') ?? answer.header('x'), 'uac')
      await this.#leg.takeAnswer(sdp)
      this.#state = offerStep(this.#state, 'answered').state
      return answer.status
    } catch (error) {
      this.#leg.log.info({ err: error }, 'our re-INVITE failed')
      await this.#rollback()
      return refusalCode(error)
    }
  }

  async #lateReanswer(sdp: string): Promise<void> {
    try {
      await this.#leg.takeAnswer(sdp)
    } catch (error) {
      this.#leg.log.info({ err: error }, 'the answer in an ACK cannot be used; the media stays as it was')
      await this.#rollback()
    }
  }

  async #rollback(): Promise<void> {
    this.#state = offerStep(this.#state, 'refused').state
    this.#onLateAnswer = null
    const { session, id, log } = this.#leg
    await session.hub
      .request('leg.rollback', { leg_id: id })
      .catch(err => log.debug({ err, leg_id: id }, 'an offer was not rolled back'))
  }
}
