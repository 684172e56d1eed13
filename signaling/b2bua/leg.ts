import { withoutAddresses } from '../../core/domain/calls/foreign.ts'
import { hearPress, INFO_ECHO_MS, INFO_LEAD_MS, type Press } from '../../core/domain/calls/key-echo.ts'
import { type LegFigures, legFigures } from '../../core/domain/calls/leg-figures.ts'
import { mayActInDialog, sameTenant } from '../../core/domain/identity/index.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Dialog, DialogHandler, Headers, InboundRequest, ServerEnd } from '../drachtio/types.ts'
import { keyOfInfo } from './dtmf-info.ts'
import type { LegPolicy, LegStats, MediaEvent, MediaKind, MediaSession } from './media.ts'
import { askPlaced } from './media-places.ts'
import { ALLOW } from './methods.ts'
import { refusedBody } from './refusal.ts'
import { Renegotiation } from './renegotiation.ts'
import type { LegServices } from './services.ts'
import { SessionId } from './session-id.ts'

/** How a key came: as media (RFC 4733 events or in-band tones), or by INFO. */
export type KeyWay = 'media' | 'info'

/** Why a leg ended, other than by our decision. */
export type LegCause = 'hung_up' | 'session_expired' | 'no_ack' | 'media_unavailable' | 'internal'

export interface LegEnd {
  readonly cause: LegCause
  readonly headers: Headers
}

export interface LegListener {
  ended(leg: Leg, facts: LegEnd): void
  /** A key press. One that came by `info` has not been passed on by a bridge. */
  digit(leg: Leg, digit: string, by: KeyWay): void
  /** The peer requests a transfer; the listener answers the request. */
  refer(leg: Leg, request: InboundRequest): void
  /** The peer reports on a REFER of ours; the listener answers the request. */
  notify(leg: Leg, request: InboundRequest): void
  held(leg: Leg, held: boolean): void
  /** The leg's media is closed; these are its final figures. */
  measured(leg: Leg, figures: LegFigures): void
  /** The peer sends a text for the other side; the listener answers the request. */
  message(leg: Leg, request: InboundRequest): void
  media(leg: Leg, event: MediaEvent): void
}

export interface LegOptions {
  readonly id: string
  readonly session: MediaSession
  readonly listener: LegListener
  readonly log: Log
  readonly trunk_id?: string | null
  /** The carrier whose leg this is; its operator vouches for its addresses. */
  readonly carrier_id?: string | null
  /** Whether the peer belongs to another tenant; then its addresses are never shown. */
  readonly foreign?: boolean
}

/** One side of a call: the dialog with its peer, and its media. */
export class Leg {
  readonly id: string
  readonly session: MediaSession
  readonly log: Log
  protected readonly ctx: LegServices
  protected listener: LegListener
  /** The id of the session, which every message to and from the peer passes. */
  protected readonly session_id = new SessionId(() => this.#other())
  #dialog: Dialog | null = null
  #answered = false
  #ended = false
  #held = false
  readonly #exchange: Renegotiation
  /** Recent keys that may still arrive again by the other way. */
  #pressed: readonly Press<KeyWay>[] = []
  #figures: LegFigures | null = null
  /** The last sample, for a leg whose worker is lost before it ends. */
  #sample: LegStats | null = null
  #answered_ms: number | null = null
  #codec: string | null = null
  /** Whether the peer may send keys by RFC 4733. */
  #key_events = false
  #silent_ms = 0
  /** How long a browser has sent no ICE checks. It sends them on hold, too. */
  #no_consent_ms = 0
  #received = 0
  #heard = false
  #mediaOpen = false
  #kind: MediaKind = 'rtp'
  #policy: LegPolicy | null = null
  readonly #setUpFrom = new Set<string>()
  #closing: Promise<void> | null = null
  /** The leg at the other end. This leg should use its codec, so that their bridge is a relay. */
  prefer: Leg | null = null
  /** The customer's trunk that this leg's peer belongs to; null for carriers, clients and SIP addresses. */
  readonly trunk_id: string | null
  readonly foreign: boolean
  /** The carrier that is this leg's peer. */
  readonly carrier_id: string | null

  constructor(ctx: LegServices, options: LegOptions) {
    this.ctx = ctx
    this.id = options.id
    this.trunk_id = options.trunk_id ?? null
    this.foreign = options.foreign ?? false
    this.carrier_id = options.carrier_id ?? null
    this.session = options.session
    this.listener = options.listener
    this.log = options.log.child({ leg_id: options.id })
    this.#exchange = new Renegotiation(this, ctx.clock)
  }

  get answered(): boolean {
    return this.#answered
  }

  /** Whether the peer hears what is played to it. */
  get hears(): boolean {
    return this.#answered
  }

  /** Whether the final answer is given. An answer of the peer may still be applied. */
  get accepted(): boolean {
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

  /** The final figures, once the media is closed; null when nothing was measured. */
  get figures(): LegFigures | null {
    return this.#figures
  }

  /** Which party this leg leads to. */
  protected get side(): LegFigures['side'] {
    return this.callingDialog ? 'called' : 'caller'
  }

  /** How long the peer has been silent; 0 while it sends or is on hold, unless it is a browser that has vanished. */
  get silent_ms(): number {
    return Math.max(this.#no_consent_ms, this.#held ? 0 : this.#silent_ms)
  }

  /** Whether any media has come from the peer. */
  get heard(): boolean {
    return this.#heard
  }

  get sip_call_id(): string | null {
    return this.#dialog?.call_id ?? null
  }

  get sipDialog(): Dialog | null {
    return this.#dialog
  }

  /** Whose offer of the INVITE itself has no answer yet; null when the exchange is complete. */
  protected set unanswered(whose: 'ours' | 'theirs' | null) {
    this.#exchange.first = whose
  }

  /** Takes the dialog with the peer. */
  protected take(dialog: Dialog): void {
    this.#dialog = this.session_id.dialog(dialog)
  }

  /** Changes the listener, for a child that became a separate call. */
  handTo(listener: LegListener): void {
    this.listener = listener
  }

  /** @throws MediaRefusal */
  async openMedia(policy: LegPolicy, kind: MediaKind = 'rtp'): Promise<void> {
    this.#policy = policy
    this.#kind = kind
    await this.session.openLeg(this.id, policy, kind, event => this.#onMedia(event))
    this.#mediaOpen = true
    if (this.#ended) await this.#closeMedia()
  }

  /** @throws MediaRefusal */
  async takeOffer(sdp: string): Promise<void> {
    const offer = await this.#placing(sdp, places =>
      this.session.hub.request('leg.remote_offer', { leg_id: this.id, sdp, ...places }),
    )
    this.#setHeld(offer.hold)
  }

  /** @throws MediaRefusal */
  async makeAnswer(): Promise<string> {
    const answer = await this.session.hub.request('leg.local_answer', { leg_id: this.id, ...this.#preferred() })
    this.#codec = answer.codec
    this.#key_events = answer.key_events
    return answer.sdp
  }

  /** @throws MediaRefusal */
  async makeOffer(): Promise<string> {
    const { sdp } = await this.session.hub.request('leg.local_offer', { leg_id: this.id, ...this.#preferred() })
    return sdp
  }

  /** @throws MediaRefusal */
  async takeAnswer(sdp: string): Promise<void> {
    const answer = await this.#placing(sdp, places =>
      this.session.hub.request('leg.remote_answer', { leg_id: this.id, sdp, ...places }),
    )
    this.#codec = answer.codec
    this.#key_events = answer.key_events
    this.#setHeld(answer.hold)
  }

  #placing<T>(sdp: string, ask: (places: { places?: Record<string, string> }) => Promise<T>): Promise<T> {
    const peer = () => ({
      carrier_id: this.carrier_id,
      came_from: [...this.#setUpFrom].at(-1) ?? null,
      relaxed: this.#policy?.source_validation === 'relaxed',
    })
    return askPlaced(this.ctx.peer_addresses, sdp, peer, ask)
  }

  /** Sends keys to this leg's far end, for a peer whose keys came by INFO. */
  sendDigits(send_id: string, digits: string): Promise<unknown> {
    return this.session.hub.request('digits.send', { leg_id: this.id, send_id, digits })
  }

  /**
   * Passes a key that came by INFO on to another leg, unless its echo comes, which the bridge passes by itself: an INFO
   * may overtake the RFC 4733 packets of its key.
   */
  passKey(digit: string, to: Leg): void {
    const press = this.#pressed.findLast(one => one.digit === digit && one.way === 'info')
    const pass = (): void => {
      if (to.ended || (press && !this.#pressed.includes(press))) return
      to.sendDigits(`${to.id}-info`, digit).catch(err => this.log.debug({ err }, 'a key was not passed on'))
    }
    if (this.#key_events && press) this.ctx.clock.after(INFO_LEAD_MS, pass)
    else pass()
  }

  /** The dialog is established; `session` is what the 2xx says of the session timer, and who we were in it. */
  protected confirmed(
    dialog: Dialog,
    session: { readonly expires: string | null; readonly allow: string | null; readonly role: 'uac' | 'uas' },
  ): void {
    this.take(dialog)
    this.#answered = true
    this.#answered_ms ??= this.ctx.clock.now()
    this.#alive()
    this.#exchange.session.allowed(session.allow)
    this.#exchange.session.agreed(session.expires, session.role)
  }

  /** Resolves with the answer in the ACK. If no ACK comes, the SIP server ends the dialog. */
  protected lateAnswer(): Promise<string> {
    return this.#exchange.lateAnswer()
  }

  /**
   * Ends this leg once; `reason` is the value of a Reason header. Subclasses end an INVITE that is not a dialog yet.
   * Every call, even after the far end has hung up, resolves when the media is closed and its statistics are complete.
   */
  async end(reason: string | null): Promise<void> {
    if (this.#ended) return this.#closeMedia()
    this.#ended = true
    this.#exchange.stop()
    const headers = reason === null ? {} : { Reason: reason }
    this.endSignaling(headers)
    await this.#closeMedia()
  }

  protected endSignaling(headers: Headers): void {
    void this.#dialog?.bye(headers)
  }

  /** Adds an address from which the peer set up this dialog. */
  protected knownFrom(address: string): void {
    if (address !== '') this.#setUpFrom.add(address)
  }

  /** Whether a request in the dialog may come from `address`, as its INVITE could have or did (design section 4). */
  #mayAct(address: string): boolean {
    const { sources = [], source_validation } = this.#policy ?? {}
    const trunk = this.trunk_id === null ? undefined : this.ctx.snapshot().trunks.get(this.trunk_id)
    const known_by_address = trunk ? trunk.auth_mode === 'ip_allow_list' : sources.length > 0
    return mayActInDialog(
      {
        set_up_from: [...this.#setUpFrom],
        sources,
        target_hosts: trunk?.targets.map(({ uri }) => hostOf(uri)) ?? [],
        roams: !known_by_address && source_validation !== 'strict',
      },
      address,
    )
  }

  readonly handler: DialogHandler = (received, facts) => {
    if (facts.server_end === null && !this.#mayAct(received.source.address)) {
      this.ctx.metrics.refusals.inc({ reason: 'source_not_allowed' })
      this.log.warn(
        { source: received.source.address, method: received.method },
        'a request within a dialog came from a stranger and was refused',
      )
      const { code, headers } = sipRefusal('source_not_allowed', {
        value: received.source.address,
        name: 'of this call',
      })
      return received.respond(code, { headers })
    }
    const request = this.session_id.request(received)
    if (request.method === 'BYE') {
      request.respond(200)
      return this.farEnd({ cause: causeOf(facts.server_end), headers: request.headers })
    }
    if (request.method === 'ACK') return this.acknowledged(request)
    if (this.#ended) return request.respond(481)
    switch (request.method) {
      case 'INVITE':
      case 'UPDATE':
        return void this.#exchange.received(request)
      case 'PRACK':
        if (this.acknowledgedEarly(request)) return
        // RFC 3262 §5: a PRACK may carry a new offer.
        if (request.content().sdp !== '' || request.content().refused) return void this.#exchange.received(request)
        return request.respond(200)
      case 'INFO':
        return this.#info(request)
      case 'REFER':
        return this.listener.refer(this, request)
      case 'NOTIFY':
        return this.listener.notify(this, request)
      case 'MESSAGE':
        return this.listener.message(this, request)
      case 'OPTIONS':
        return request.respond(200, { headers: { Allow: ALLOW, Accept: 'application/sdp' } })
      case 'SUBSCRIBE':
        return request.respond(489)
      default:
        return request.respond(405, { headers: { Allow: ALLOW } })
    }
  }

  /** The peer has hung up. */
  protected farEnd(facts: LegEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#exchange.stop()
    void this.#closeMedia()
    this.listener.ended(this, facts)
  }

  protected acknowledged(ack: InboundRequest): void {
    if (!this.#ended) this.#exchange.acknowledged(ack)
  }

  /** Takes the answer that a PRACK carries when our provisional response had the offer; false for any other PRACK. */
  protected acknowledgedEarly(_prack: InboundRequest): boolean {
    return false
  }

  /** Ends a leg that a fault made unusable with BYE, and notifies the owner. */
  fail(cause: LegCause): void {
    if (this.#ended) return
    void this.end(null)
    this.listener.ended(this, { cause, headers: {} })
  }

  /**
   * Sends a re-INVITE with the codecs of `prefer` first. False when the peer refused it; the session is then unchanged.
   * A 408 or 481 ends the leg.
   */
  reoffer(): Promise<boolean> {
    return this.#exchange.begin()
  }

  /** Whether we sent the INVITE of this dialog. */
  get callingDialog(): boolean {
    return false
  }

  #info(request: InboundRequest): void {
    const { digit, refused } = keyOfInfo(request)
    request.respond(refused ? 415 : 200, refused ? { headers: refusedBody(refused) } : {})
    if (digit === null) return
    // The worker looks for echoes, too: a key in the media may be on its way from there.
    this.session.hub
      .request('key.heard', { leg_id: this.id, digit })
      .catch(err => this.log.debug({ err }, 'a key was not told to the media worker'))
    this.#key(digit, 'info', 0)
  }

  #key(digit: string, way: KeyWay, held_ms: number): void {
    const press = { digit, way, held_ms, at_ms: this.ctx.clock.monotonic_ms() }
    const { isNew, pending } = hearPress(this.#pressed, press, INFO_ECHO_MS)
    this.#pressed = pending
    if (isNew) this.listener.digit(this, digit, way)
  }

  #onMedia(heard: MediaEvent): void {
    if (this.#ended || (this.foreign && heard.event === 'leg.sdp_notes')) return
    const event =
      this.foreign && heard.event === 'leg.stats' ? { ...heard, stats: withoutAddresses(heard.stats) } : heard
    if (event.event === 'leg.silent') {
      const silent_ms = this.#silenceOf(event.for_ms)
      if (event.no_consent) this.#no_consent_ms = silent_ms
      else this.#silent_ms = silent_ms
    } else if (event.event === 'leg.first_packet') {
      this.#heard = true
      this.#alive()
    } else if (event.event === 'leg.stats') {
      this.#sample = event.stats
      if (event.stats.packets_received > this.#received) this.#alive()
      this.#received = event.stats.packets_received
    }
    if (event.event === 'dtmf') this.#key(event.digit, 'media', event.duration_ms)
    else this.listener.media(this, event)
  }

  /** The peer has sent something. */
  #alive(): void {
    this.#silent_ms = 0
    this.#no_consent_ms = 0
  }

  /** A browser may take no notice of our SDP before the answer. Its silence counts from there. */
  #silenceOf(for_ms: number): number {
    if (this.#kind === 'rtp' || this.#answered_ms === null) return for_ms
    return Math.min(for_ms, this.ctx.clock.now() - this.#answered_ms)
  }

  /** The UUID of the leg at the other end. Only a leg of the same tenant may know it, as it may know X- headers. */
  #other(): string | null {
    const uuid = this.prefer?.session_id.uuid ?? null
    if (uuid === null) return null
    const { trunks } = this.ctx.snapshot()
    const [own, theirs] = [trunks.get(this.trunk_id ?? ''), trunks.get(this.prefer?.trunk_id ?? '')]
    return own && theirs && sameTenant(own, theirs) ? uuid : null
  }

  /** Sets whether the peer holds the call. */
  #setHeld(held: boolean): void {
    if (held === this.#held) return
    this.#held = held
    this.#alive()
    if (this.#answered) this.listener.held(this, held)
  }

  #preferred(): { prefer_leg?: string } {
    return this.prefer && !this.prefer.ended ? { prefer_leg: this.prefer.id } : {}
  }

  #measured(last: LegStats | null): void {
    const stats = last ?? this.#sample
    if (stats === null || this.#figures) return
    this.#figures = legFigures(this.foreign ? withoutAddresses(stats) : stats, {
      leg_id: this.id,
      side: this.side,
      answered_ms: this.#answered_ms,
      ended_ms: this.ctx.clock.now(),
      complete: last !== null,
    })
    this.listener.measured(this, this.#figures)
  }

  #closeMedia(): Promise<void> {
    if (this.#mediaOpen) this.#closing ??= this.session.closeLeg(this.id).then(stats => this.#measured(stats))
    return this.#closing ?? Promise.resolve()
  }
}

const causeOf = (server_end: ServerEnd | null): LegCause =>
  server_end === null || server_end === 'other' ? 'hung_up' : server_end
