import { hasToken, readSeconds, readSessionExpires } from '../../core/domain/sip/values.ts'
import { type Clock, LONGEST_TIMER_MS, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Dialog, SipResponse } from '../drachtio/types.ts'
import { refreshHeaders } from './session-timer.ts'

/**
 * When our refreshes are due, as parts of the interval: before the SIP server's own at half of it (RFC 4028 §10). Only
 * this node can answer a challenge to a refresh, and take the SDP that answers it.
 */
const DUE_FROM = 0.36
const DUE_UNTIL = 0.4
/** How long to wait after a refusal that passes (RFC 3261 §14.1). */
const BUSY_MS = 2000
const PASSING: ReadonlySet<number> = new Set([491, 500, 503, 504])

/** The leg whose session is refreshed. */
interface Refreshed {
  readonly ended: boolean
  readonly sipDialog: Dialog | null
  readonly log: Log
  fail(cause: 'session_expired'): void
}

/** Refreshes the session of a leg's dialog while it is our turn. A refresh that fails is left to the SIP server's. */
export class SessionRefresh {
  readonly #leg: Refreshed
  readonly #clock: Clock
  /** Sends a re-INVITE with these headers; resolves with its final code, or 491 while another exchange is open. */
  readonly #reinvite: () => Promise<number>
  #seconds: number | null = null
  #min_se = 90
  #updates = false
  #timer: Timer | null = null

  constructor(leg: Refreshed, clock: Clock, reinvite: () => Promise<number>) {
    this.#leg = leg
    this.#clock = clock
    this.#reinvite = reinvite
  }

  /** The session headers of our next re-INVITE; without them it would end the timer (RFC 4028 §7.4). */
  get headers(): Record<string, string> {
    return this.#seconds === null ? {} : refreshHeaders(this.#seconds, this.#min_se)
  }

  /** Notes whether the peer's Allow lists UPDATE, which refreshes without touching the media. */
  allowed(allow: string | null): void {
    if (allow !== null) this.#updates = hasToken(allow, 'UPDATE')
  }

  /** Takes the Session-Expires of a 2xx; null turns the timer off. `role` is ours in that transaction. */
  agreed(value: string | null, role: 'uac' | 'uas'): void {
    this.#timer?.cancel()
    const said = readSessionExpires(value)
    this.#seconds = said && said.seconds > 0 ? said.seconds : null
    if (this.#seconds === null || (said?.refresher ?? 'uac') !== role) return
    const part = DUE_FROM + Math.random() * (DUE_UNTIL - DUE_FROM)
    this.#after(this.#seconds * 1000 * part)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#seconds = null
  }

  #after(ms: number): void {
    this.#timer = this.#clock.after(Math.min(ms, LONGEST_TIMER_MS), () => void this.#refresh())
  }

  async #refresh(): Promise<void> {
    if (this.#leg.ended || this.#seconds === null) return
    const code = this.#updates ? await this.#update() : await this.#reinvite()
    if (this.#leg.ended || this.#seconds === null || code < 300) return
    if (code === 408 || code === 481) this.#leg.fail('session_expired')
    else if (PASSING.has(code)) this.#after(BUSY_MS)
    else if (this.#updates && (code === 405 || code === 501)) {
      this.#updates = false
      await this.#refresh()
    } else this.#leg.log.info({ code }, 'the peer refused to refresh the session')
  }

  async #update(): Promise<number> {
    const { sipDialog } = this.#leg
    if (!sipDialog) return 491
    try {
      let answer = await sipDialog.request('UPDATE', { headers: this.headers })
      if (answer.status === 422 && this.#raise(answer)) {
        answer = await sipDialog.request('UPDATE', { headers: this.headers })
      }
      if (answer.status < 300) this.agreed(answer.header('session-expires') ?? answer.header('x'), 'uac')
      return answer.status
    } catch (err) {
      this.#leg.log.info({ err }, 'a session could not be refreshed')
      return 500
    }
  }

  /** RFC 4028 §7.3: the peer's minimum, which must be above our interval. */
  #raise(answer: SipResponse): boolean {
    const wanted = readSeconds(answer.header('min-se')) ?? 0
    if (this.#seconds === null || !(wanted > this.#seconds && wanted <= 86_400)) return false
    this.#seconds = wanted
    this.#min_se = wanted
    return true
  }
}
