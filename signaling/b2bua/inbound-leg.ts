import { SUPPORTED } from '../../core/domain/calls/option-tags.ts'
import { hasToken } from '../../core/domain/sip/values.ts'
import { delay, type Timer } from '../../core/runtime/clock.ts'
import {
  Cancelled,
  type Credentials,
  type Headers,
  type InboundInvite,
  type InboundRequest,
  LinkLost,
} from '../drachtio/types.ts'
import { Leg, type LegOptions } from './leg.ts'
import { MediaRefusal } from './media.ts'
import { ALLOW } from './methods.ts'
import type { LegServices } from './services.ts'
import { answerHeaders } from './session-timer.ts'

/** How long a 2xx waits for the PRACK of an earlier reliable response. A lost PRACK must not lose the call. */
const PRACK_LIMIT_MS = 4000

/**
 * A UAS that takes longer must send a 1xx every minute (RFC 3261 §13.3.1.1): proxies on the way give up 2 or 3 minutes
 * after the last one. A drachtio-server forgets after 64 s.
 */
const STILL_HERE_MS = 50_000

/** What the caller has been told so far, each step but once. */
const PROGRESS = ['none', 'called', 'ringing', 'early'] as const

/** The leg of a caller: an INVITE until our final response, then a dialog. */
export class InboundLeg extends Leg {
  readonly invite: InboundInvite
  readonly #auth: Credentials | undefined
  readonly #late: boolean
  readonly #reliable: 'required' | 'supported' | 'no'
  #stillHere: Timer
  #earlyAnswer = false
  #progress: (typeof PROGRESS)[number] = 'none'
  #refused = false
  #answering: Promise<void> | null = null
  #acknowledged = false
  /** Sends the BYE that waits for the ACK. */
  #bye: (() => void) | null = null
  #provisional: Promise<unknown> = Promise.resolve()
  /** Our offer in a reliable provisional response; `answered` resolves when the PRACK's answer is applied. */
  #early: { readonly answered: Promise<void>; readonly take: (sdp: string) => void } | null = null
  /** The status and headers of our final refusal. */
  #refusal: { readonly status: number; readonly headers: Headers } = { status: 480, headers: {} }

  /** `auth` answers the caller's challenges to our requests in the dialog. */
  constructor(
    ctx: LegServices,
    options: LegOptions & { readonly invite: InboundInvite; readonly auth?: Credentials | undefined },
  ) {
    super(ctx, options)
    this.#auth = options.auth
    this.invite = this.session_id.invite(options.invite)
    this.knownFrom(options.invite.source.address)
    this.#late = options.invite.content().sdp === ''
    if (!this.#late) this.unanswered = 'theirs'
    const { invite } = options
    this.#reliable = hasToken(invite.header('require'), '100rel')
      ? 'required'
      : hasToken(invite.header('supported') ?? invite.header('k'), '100rel')
        ? 'supported'
        : 'no'
    invite.onEarly(this.handler)
    this.#stillHere = this.#sayLater(183)
  }

  /** Whether the INVITE had no offer. Then our 200 carries the offer, and early media is impossible. */
  get late(): boolean {
    return this.#late
  }

  get progressed(): boolean {
    return this.#progress !== 'none'
  }

  override get hears(): boolean {
    return this.answered || this.#progress === 'early'
  }

  override get sip_call_id(): string {
    return this.invite.call_id
  }

  /** Passes on that the call goes on or rings, each once. A telephone plays its ring tone for 180 alone. */
  ring(status: 180 | 181 | 182 | 183 = 180): void {
    const next = status === 180 ? 'ringing' : 'called'
    if (this.answered || this.ended || PROGRESS.indexOf(next) <= PROGRESS.indexOf(this.#progress)) return
    const before = this.#progress
    this.#progress = next
    const must = this.#must
    // RFC 3262 §5: the first reliable response to an INVITE without an offer has ours.
    if (this.#late && must) this.#offerEarly(status).catch(err => this.log.info({ err }, 'an early offer failed'))
    else if (before === 'none' || !must) this.#say(status, { reliable: must })
    else void this.#sayNext(status)
  }

  /** RFC 3262 §3: a reliable response waits for the PRACK of the one before. */
  async #sayNext(status: number): Promise<void> {
    await this.#prackLimit()
    if (!this.answered && !this.ended && this.#progress !== 'early') this.#say(status, { reliable: true })
  }

  /** Sends our offer in a reliable provisional response. Resolves to false when the leg ends before the answer. */
  async #offerEarly(status: number): Promise<boolean> {
    if (!this.#early) {
      let take = (_sdp: string): void => undefined
      const given = new Promise<string>(resolve => {
        take = resolve
      })
      const answered = given.then(sdp => this.takeAnswer(sdp))
      // Who waits for it, in `answer` or `early`, sees the failure.
      answered.catch(() => undefined)
      this.#early = { answered, take }
      const body = await this.makeOffer()
      if (this.answered || this.ended) return false
      this.unanswered = 'ours'
      this.#say(status, { body, reliable: true })
    }
    await this.#answeredEarly(this.#early.answered)
    return !this.answered && !this.ended
  }

  /** Waits for the answer to our early offer. @throws MediaRefusal when it cannot be used or does not come */
  async #answeredEarly(answered: Promise<void>): Promise<void> {
    const none = delay(this.ctx.clock, PRACK_LIMIT_MS).then(() => {
      throw new MediaRefusal('no_answer', 'the PRACK of our offer did not come')
    })
    // The loser of the race may fail later, when nobody waits for it.
    none.catch(() => undefined)
    await Promise.race([answered, none])
  }

  protected override acknowledgedEarly(prack: InboundRequest): boolean {
    if (!this.#early || prack.content().sdp === '' || this.#earlyAnswer) return false
    this.#earlyAnswer = true
    this.unanswered = null
    prack.respond(200)
    this.#early.take(prack.content().sdp)
    return true
  }

  /** Sends a 183 with our SDP answer; false when the caller cannot have early media. @throws MediaRefusal */
  async early(): Promise<boolean> {
    if (this.answered || this.ended) return false
    if (this.#progress === 'early') return true
    if (this.#late) {
      if (!this.#must) return false
      if (!(await this.#offerEarly(183))) return false
      this.#progress = 'early'
      return true
    }
    // A later 180 is not passed on: the caller already hears early media.
    const before = this.#progress
    this.#progress = 'early'
    const sdp = await this.makeAnswer().catch(error => {
      this.#progress = before
      throw error
    })
    if (this.#must) await this.#prackLimit()
    if (this.answered || this.ended) return false
    this.unanswered = null
    // A 200 that waits for the same PRACK has this SDP.
    if (!this.#answering) this.#say(183, { body: sdp, reliable: this.#reliable !== 'no' })
    return true
  }

  /**
   * Sends 200 OK; resolves when the offer/answer exchange is complete.
   * @throws Cancelled, CallerGone, LinkLost, MediaRefusal
   */
  answer(): Promise<void> {
    this.#answering ??= this.#answer()
    return this.#answering
  }

  async #answer(): Promise<void> {
    if (this.#early) await this.#answeredEarly(this.#early.answered)
    // An exchange that a PRACK completed leaves no SDP for the 200 (RFC 3262 §5).
    const body = this.#early ? '' : this.#late ? await this.makeOffer() : await this.makeAnswer()
    await this.#prackLimit()
    if (this.ended || this.#refused) throw new Cancelled()
    const late = this.#late && !this.#early ? this.lateAnswer() : null
    const timer = answerHeaders(this.invite)
    const answer = {
      headers: { ...timer, Allow: ALLOW, Supported: SUPPORTED },
      ...(body === '' ? {} : { body }),
      ...(this.#auth ? { auth: this.#auth } : {}),
    }
    this.#stillHere.cancel()
    this.unanswered = null
    const dialog = await this.invite.accept(answer, this.handler)
    this.take(dialog)
    if (this.ended) {
      this.#hangUp({})
      throw new LinkLost()
    }
    const expires = timer['Session-Expires'] ?? null
    this.confirmed(dialog, { expires, allow: this.invite.header('allow'), role: 'uas' })
    if (late) await this.takeAnswer(await late)
  }

  /** Sets the status and headers that the caller gets if the leg ends unanswered. */
  refuseWith(status: number, headers: Headers): void {
    this.#refusal = { status, headers }
  }

  protected override endSignaling(headers: Headers): void {
    if (this.answered) {
      this.#hangUp(headers)
      return
    }
    this.#stillHere.cancel()
    this.#refused = true
    this.invite.refuse(this.#refusal.status, { headers: { ...headers, ...this.#refusal.headers } })
  }

  /** Sends a BYE, but not before the ACK (RFC 3261 §15). If no ACK comes, the SIP server ends the dialog. */
  #hangUp(headers: Headers): void {
    this.#bye = () => super.endSignaling(headers)
    if (this.#acknowledged) this.#bye()
  }

  protected override acknowledged(ack: InboundRequest): void {
    this.#acknowledged = true
    super.acknowledged(ack)
    this.#bye?.()
  }

  /** Whether every provisional response has to be reliable. */
  get #must(): boolean {
    return this.#reliable === 'required'
  }

  #say(status: number, options: { body?: string; reliable: boolean }): void {
    this.#stillHere.cancel()
    this.#stillHere = this.#sayLater(status, options)
    const sent = this.invite.progress(status, { ...options, headers: { Allow: ALLOW } })
    if (options.reliable) this.#provisional = sent
  }

  /** Repeats a provisional response. SDP is repeated only if the caller may have missed it (RFC 6337 §3.1.1). */
  #sayLater(status: number, { body = '', reliable = false } = {}): Timer {
    return this.ctx.clock.after(STILL_HERE_MS, () => {
      if (this.answered || this.ended) return
      if (this.#late && this.#must && !this.#early) this.ring(183)
      else this.#say(status, { ...(reliable || body === '' ? {} : { body }), reliable: this.#must })
    })
  }

  #prackLimit(): Promise<unknown> {
    return Promise.race([this.#provisional, delay(this.ctx.clock, PRACK_LIMIT_MS)])
  }
}
