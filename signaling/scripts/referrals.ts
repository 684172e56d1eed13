import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { readToken, statusIn } from '../../core/domain/sip/values.ts'
import type { Timer } from '../../core/runtime/clock.ts'
import type { AnswerRefer, Event, Refer } from '../../markup/interpreter/types.ts'
import type { Leg } from '../b2bua/leg.ts'
import { notifyReferrer } from '../b2bua/refer-notify.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { Dialog, InboundRequest } from '../drachtio/types.ts'
import type { ScriptContext } from './context.ts'

/** How long a Refer waits for the final NOTIFY (voice-compat.md §10, Refer). */
const NOTIFY_LIMIT_MS = 60_000

/** What a NOTIFY reports (RFC 3515 §2.4.5). */
const SIPFRAG: ReadonlySet<string> = new Set(['message/sipfrag'])

interface Sent {
  readonly id: string
  /** The answer to the REFER; null before it came. */
  sip_code: number | null
  notify_code: number | null
  /** Whether a NOTIFY has told the outcome. */
  over: boolean
  timer: Timer | null
}

type ReferralServices = Pick<ScriptContext, 'children' | 'config' | 'snapshot'>

/** Handles REFER in both directions (RFC 3515): reads the NOTIFYs for ours, and sends those for the peer's. */
export class Referrals {
  readonly #ctx: ReferralServices
  readonly #host: ScriptHost
  readonly #emit: (event: Event) => void
  #sent: Sent | null = null
  readonly #received = new Map<string, InboundRequest>()

  constructor(ctx: ReferralServices, host: ScriptHost, emit: (event: Event) => void) {
    this.#ctx = ctx
    this.#host = host
    this.#emit = emit
  }

  send(command: Refer): void {
    void this.#refer(command)
  }

  notified(request: InboundRequest): void {
    request.respond(200)
    const sent = this.#sent
    if (!sent || readToken(request.header('event') ?? request.header('o') ?? 'refer') !== 'refer') return
    const code = statusIn(request.content(SIPFRAG).parts[0]?.content ?? '')
    const before = sent.notify_code
    if (code !== null) sent.notify_code = code
    const over = readToken(request.header('subscription-state')) === 'terminated'
    sent.over = over || (sent.notify_code !== null && sent.notify_code >= 200)
    // RFC 6665 §4.1.2.4: a NOTIFY may overtake the answer to its REFER.
    if (sent.over && sent.sip_code !== null) this.#over()
    else if (!sent.over && code !== null && code !== before)
      this.#emit({ type: 'refer_notified', id: sent.id, notify_code: code })
  }

  received(leg: 'self' | string, request: InboundRequest): void {
    const target = request.header('refer-to') ?? request.header('r')
    if (target === null) {
      request.respond(400)
      return
    }
    if (this.#received.has(leg)) {
      request.respond(491)
      return
    }
    this.#received.set(leg, request)
    this.#emit({ type: 'refer_received', leg, target, headers: customHeaders(request.headers) })
    // The run answers a REFER within `emit`, or never.
    if (this.#received.delete(leg)) request.respond(603)
  }

  answer(command: AnswerRefer, legOf: (child: string) => Leg | null): void {
    const request = this.#received.get(command.leg)
    if (!request) return
    this.#received.delete(command.leg)
    request.respond(command.sip_code)
    if (command.sip_code !== 202) return
    const leg = command.leg === 'self' ? this.#host.leg : legOf(command.leg)
    const dialog = leg?.sipDialog
    if (!leg || !dialog) return
    void this.#release(dialog)
  }

  drop(): void {
    this.#sent?.timer?.cancel()
    this.#sent = null
    for (const request of this.#received.values()) request.respond(603)
    this.#received.clear()
  }

  /** Notifies the referrer of success and releases it: the remaining leg has its new script. */
  async #release(dialog: Dialog): Promise<void> {
    try {
      await notifyReferrer(dialog, '100 Trying', 'active;expires=60')
      await notifyReferrer(dialog, '200 OK', 'terminated;reason=noresource')
    } catch (err) {
      this.#host.call.log.info({ err }, 'the referrer could not be notified')
    }
    await dialog.bye()
  }

  async #refer(command: Refer): Promise<void> {
    const { leg, call } = this.#host
    const dialog = leg.sipDialog
    if (!dialog) return this.#emit({ type: 'refer_ended', id: command.id, sip_code: null, notify_code: null })
    // A carrier would call any target at our expense, without admission.
    if (leg.trunk_id === null && call.row_now.carrier_id !== null) {
      call.event('warning', null, { detail: 'a carrier is never asked to transfer: Refer is for legs of own trunks' })
      return this.#emit({ type: 'refer_ended', id: command.id, sip_code: 403, notify_code: null })
    }
    if (leg.trunk_id !== null && this.#ctx.snapshot().trunks.get(leg.trunk_id)?.transfers === 'refuse') {
      call.event('warning', null, { detail: 'the trunk of this leg refuses transfers: its peer is not asked for one' })
      return this.#emit({ type: 'refer_ended', id: command.id, sip_code: 603, notify_code: null })
    }
    try {
      const denied = await this.#ctx.children.refer(call, command.uri)
      if (denied) {
        call.event('warning', denied.refused.number, { detail: denied.refused.detail })
        return this.#emit({ type: 'refer_ended', id: command.id, sip_code: denied.refused.sip_code, notify_code: null })
      }
      const sent: Sent = { id: command.id, sip_code: null, notify_code: null, over: false, timer: null }
      this.#sent = sent
      const answer = await dialog.request('REFER', {
        headers: {
          ...Object.fromEntries(command.headers),
          'Refer-To': `<${command.uri}>`,
          'Referred-By': `<sip:${call.facts.to}@${this.#ctx.config.domain}>`,
        },
      })
      if (this.#sent !== sent) return
      if (answer.status >= 300) {
        this.#sent = null
        return this.#emit({ type: 'refer_ended', id: command.id, sip_code: answer.status, notify_code: null })
      }
      sent.sip_code = answer.status
      this.#emit({ type: 'refer_accepted', id: command.id, sip_code: answer.status })
      if (sent.over) this.#over()
      else sent.timer = call.clock.after(NOTIFY_LIMIT_MS, () => this.#over())
    } catch (err) {
      this.#sent = null
      call.log.info({ err }, 'REFER was not answered')
      this.#emit({ type: 'refer_ended', id: command.id, sip_code: null, notify_code: null })
    }
  }

  #over(): void {
    const sent = this.#sent
    if (!sent) return
    sent.timer?.cancel()
    this.#sent = null
    this.#emit({ type: 'refer_ended', id: sent.id, sip_code: sent.sip_code, notify_code: sent.notify_code })
  }
}
