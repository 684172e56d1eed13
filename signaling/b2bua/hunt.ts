import type { TlsVerification } from '../../core/domain/network/tls-verification.ts'
import {
  type AttemptFailure,
  type AttemptOutcome,
  mayFailOver,
  outcomeOf,
  triesNextAddress,
} from '../../core/domain/routing/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import { iso, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { CallAttemptTable } from '../../core/state/index.ts'
import type { Credentials, Headers, SipResponse } from '../drachtio/types.ts'
import type { CheckedAddress } from '../trunks/peer-addresses.ts'
import { kindOfTransport } from './browser.ts'
import type { AttemptStep } from './call-writes.ts'
import type { Leg, LegListener } from './leg.ts'
import type { LegPolicy, MediaSession } from './media.ts'
import { type InviteFacts, type LegOutcome, OutboundLeg } from './outbound-leg.ts'
import { redirectUris } from './redirect.ts'
import { refusalCode } from './refusal.ts'
import type { NodeServices } from './services.ts'

/** One target to try. */
export interface HuntHop extends InviteFacts {
  /** The target's name in call details and logs. */
  readonly target: string
  readonly target_id: string | null
  readonly carrier_id: string | null
  /** The customer's trunk that the target belongs to; such a target may transfer its calls. */
  readonly trunk_id?: string | null
  readonly transport: string
  readonly policy: LegPolicy
  /** Where a 3xx of this target may redirect us to. Credentials and TLS verification are those of the host. */
  readonly redirects: readonly {
    readonly host: string
    readonly tls: TlsVerification
    readonly auth?: Credentials
  }[]
  /** Returns the headers that say that this target has diverted the call to a URI of its 3xx. */
  readonly diverted?: (uri: string) => Headers
  /** The address that a registered contact has proved to own. */
  readonly proven_host?: string
  /** How TLS verifies the target's identity; unset: by certificate chain and name. */
  readonly tls?: TlsVerification
}

/** One address of a target, which we may send to. */
interface HopAddress {
  readonly hop: HuntHop
  readonly address: CheckedAddress
}

export interface HuntOutcome extends AttemptOutcome {
  /** What the last attempt reported, as text. */
  readonly detail: string
  /** The headers of the final response, such as Reason and X- headers. */
  readonly headers: Headers
  readonly link_lost: boolean
}

export interface HuntListener extends LegListener {
  /** An INVITE has been sent, for the first or a later attempt. */
  attempt(hop: HuntHop, facts: { readonly call_id: string }): void
  ringing(leg: OutboundLeg, response: SipResponse): void
  /** Early media can be heard on this leg. No other target is tried once this returns true. */
  early(leg: OutboundLeg, response: SipResponse): Promise<boolean>
  answered(leg: OutboundLeg, response: SipResponse, hop: HuntHop): void
  failed(outcome: HuntOutcome): void
}

const MAX_ATTEMPTS = 10
/** How long a target may stay silent while another can be tried (design section 4). */
const SILENCE_MS = 5000

/** `silent`: the target did not respond in time and the leg was abandoned. */
type HopOutcome = LegOutcome | { readonly kind: 'silent' }

interface HuntOptions {
  readonly call_sid: string
  readonly hops: readonly HuntHop[]
  readonly session: MediaSession
  readonly listener: HuntListener
  /** Stores the attempts and their results. */
  readonly keep: (step: AttemptStep) => void
  readonly ring_ms: number
  readonly log: Log
  /** The leg whose codecs our offers put first. */
  readonly prefer: Leg | null
  /** Returns more hops after the last, or `taken` when the call goes on without a hunt. */
  readonly next?: (() => Promise<readonly HuntHop[] | 'taken'>) | null
}

/** Calls the hops one after the other until one answers or no other may be tried (design section 4). */
export class Hunt {
  readonly #ctx: NodeServices
  readonly #log: Log
  readonly #hops: HuntHop[]
  /** The addresses of the current target that have not been tried. */
  #addresses: HopAddress[] = []
  readonly #listener: HuntListener
  readonly #session: MediaSession
  readonly #call_sid: string
  readonly #keep: (step: AttemptStep) => void
  readonly #ring_ms: number
  readonly #prefer: Leg | null
  #leg: OutboundLeg | null = null
  #ended = false
  #timer: Timer | null = null
  #mediaPassed = false
  #started_ms: number | null = null
  #pdd_ms: number | null = null
  #redirected = false
  /** Where the call goes when no hop could take it; null once asked. */
  #next: NonNullable<HuntOptions['next']> | null
  /** The number of the last attempt that may be made. */
  #last = MAX_ATTEMPTS

  constructor(ctx: NodeServices, options: HuntOptions) {
    this.#ctx = ctx
    this.#hops = options.hops.slice(0, MAX_ATTEMPTS)
    this.#listener = options.listener
    this.#session = options.session
    this.#call_sid = options.call_sid
    this.#keep = options.keep
    this.#ring_ms = options.ring_ms
    this.#log = options.log
    this.#prefer = options.prefer
    this.#next = options.next ?? null
  }

  get leg(): OutboundLeg | null {
    return this.#leg
  }

  /** The delay from the first INVITE to the first 18x or 200. */
  get pdd_ms(): number | null {
    return this.#pdd_ms
  }

  start(): void {
    this.#timer = this.#ctx.clock.after(this.#ring_ms, () => this.#giveUp())
    void this.#run()
  }

  /** Ends the current attempt or the answered leg, without a call of `failed`. */
  async end(reason: string | null): Promise<void> {
    if (this.#ended && !this.#leg?.answered) return
    this.#ended = true
    this.#timer?.cancel()
    await this.#leg?.end(reason)
  }

  #giveUp(): void {
    if (this.#ended) return
    const { status, code, reason } = outcomeOf({ kind: 'no_response' }, 'ring_timeout')
    this.#ended = true
    void this.#leg?.end('Q.850;cause=19;text="No answer from user"')
    this.#listener.failed({ status, code, reason, detail: 'not answered in time', headers: {}, link_lost: false })
  }

  async #run(): Promise<void> {
    let last: HuntOutcome = {
      ...outcomeOf({ kind: 'transport' }),
      detail: 'there is no target to call',
      headers: {},
      link_lost: false,
    }
    for (let sequence = 1; !this.#ended; sequence++) {
      const more = sequence <= this.#last
      const next_address = more ? this.#addresses.shift() : undefined
      const hop = next_address ? null : ((more ? this.#hops.shift() : undefined) ?? (await this.#firstOfNext()))
      if ((!next_address && !hop) || this.#ended) break
      const tried = next_address
        ? await this.#attempt(next_address, sequence)
        : hop
          ? await this.#begin(hop, sequence)
          : 'done'
      if (tried === 'done' || this.#ended) return
      last = tried.outcome
      if (!tried.next) break
    }
    if (this.#ended) return
    this.#ended = true
    this.#timer?.cancel()
    this.#listener.failed(last)
  }

  /** Takes the hops that follow when these are used up, and returns the first. */
  async #firstOfNext(): Promise<HuntHop | undefined> {
    const next = this.#next
    this.#next = null
    const hops = next === null ? [] : await next()
    if (this.#ended) return undefined
    if (hops === 'taken') {
      this.#ended = true
      this.#timer?.cancel()
      return undefined
    }
    this.#addresses = []
    this.#hops.splice(0, this.#hops.length, ...hops.slice(0, MAX_ATTEMPTS))
    this.#last += this.#hops.length === 0 ? 0 : MAX_ATTEMPTS
    return this.#hops.shift()
  }

  /** Resolves a target and tries its first address. A target that does not resolve is a failed attempt. */
  async #begin(hop: HuntHop, sequence: number): Promise<'done' | { outcome: HuntOutcome; next: boolean }> {
    const found = await this.#ctx.peer_addresses.find(hop)
    if (this.#ended) return 'done'
    if (found.kind === 'found') {
      this.#addresses = found.addresses.map(address => ({ hop, address }))
      const first = this.#addresses.shift()
      if (first) return this.#attempt(first, sequence)
    }
    const failure: AttemptFailure = { kind: found.kind === 'refused' ? 'not_allowed' : 'transport' }
    const detail = found.kind === 'found' ? '' : found.detail
    const outcome = { ...outcomeOf(failure), detail, headers: {}, link_lost: false }
    this.#log.info({ target: hop.target, detail }, 'a target cannot be reached')
    this.#record(hop, sequence).ended('failed', null, outcome.reason, null)
    this.#ctx.health.attempted(hop.target_id, false)
    return { outcome, next: mayFailOver(failure, this.#mediaPassed) }
  }

  async #attempt(hop_address: HopAddress, sequence: number): Promise<'done' | { outcome: HuntOutcome; next: boolean }> {
    const { hop, address } = hop_address
    const attempt = this.#record(hop, sequence)
    const silence = this.#silence(sequence)
    const leg = new OutboundLeg(this.#ctx, {
      id: `${this.#call_sid}-b${sequence}-${this.#ctx.node_id.slice(-4)}`,
      session: this.#session,
      log: this.#log,
      trunk_id: hop.trunk_id ?? null,
      carrier_id: hop.carrier_id,
      listener: {
        ...this.#forward(),
        sent: facts => {
          this.#started_ms ??= this.#ctx.clock.monotonic_ms()
          silence.begin()
          attempt.sent(facts.call_id)
          this.#listener.attempt(hop, facts)
        },
        progress: (response, early) => {
          silence.end()
          this.#firstAnswer()
          attempt.provisional(response)
          void this.#progress(leg, response, early)
        },
      },
    })
    this.#leg = leg
    leg.prefer = this.#prefer
    const outcome = await Promise.race([this.#place(leg, { ...hop, proxy: address.proxy }), silence.lasted])
    silence.end()
    if (outcome.kind === 'answered') {
      this.#firstAnswer()
      attempt.ended('answered', outcome.response.status, null, outcome.response.source.address)
      this.#ctx.peer_addresses.answered(address)
      if (this.#ended) {
        void leg.end(null)
        return 'done'
      }
      this.#timer?.cancel()
      this.#listener.answered(leg, outcome.response, hop)
      return 'done'
    }
    const failed = this.#failure(outcome)
    const canceled = this.#ended
    attempt.ended(
      canceled ? 'canceled' : outcome.kind === 'refused' ? 'refused' : failed.code === 408 ? 'no_answer' : 'failed',
      outcome.kind === 'refused' ? outcome.response.status : null,
      canceled ? null : failed.reason,
      (outcome.kind === 'refused' && outcome.response.source.address) || address.host,
    )
    await leg.end(null)
    if (triesNextAddress(failed.failure)) {
      if (!canceled) this.#ctx.peer_addresses.failedAt(address)
    } else this.#addresses = []
    if (!canceled && this.#addresses.length === 0)
      this.#ctx.health.attempted(hop.target_id, failed.failure.kind === 'response' && failed.code < 500)
    const followed = outcome.kind === 'refused' && this.#follow(outcome.response, hop)
    return { outcome: failed, next: followed || mayFailOver(failed.failure, this.#mediaPassed) }
  }

  /** Limits a target's silence where the SIP server does not: its own timeout of 32 s is too long for a caller. */
  #silence(sequence: number) {
    const { clock, sip } = this.#ctx
    let timer: Timer | null = null
    let lasts: (outcome: HopOutcome) => void = () => undefined
    const lasted = new Promise<HopOutcome>(resolve => {
      lasts = resolve
    })
    const another = (): boolean =>
      this.#next !== null || (sequence < this.#last && this.#addresses.length + this.#hops.length > 0)
    return {
      lasted,
      begin: (): void => {
        if (sip.limits_silence) return
        // An INVITE repeated after a 422 gets the full time again.
        timer?.cancel()
        timer = clock.after(SILENCE_MS, () => {
          if (another()) lasts({ kind: 'silent' })
        })
      },
      end: (): void => timer?.cancel(),
    }
  }

  async #place(leg: OutboundLeg, hop: HuntHop): Promise<LegOutcome> {
    try {
      await leg.openMedia(hop.policy, kindOfTransport(hop.transport))
      return await leg.place(hop)
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      if (refusalCode(error) === 500) this.#log.error({ err: error }, 'could not place a leg')
      return { kind: 'failed', detail, link_lost: false }
    }
  }

  #failure(outcome: Exclude<HopOutcome, { kind: 'answered' }>): HuntOutcome & { failure: AttemptFailure } {
    const failure = failureOf(outcome)
    const headers = outcome.kind === 'refused' ? outcome.response.headers : {}
    const detail = detailOf(outcome)
    const link_lost = outcome.kind === 'failed' && outcome.link_lost
    return { ...outcomeOf(failure), failure, detail, headers, link_lost }
  }

  /** Follows one 3xx where the target's configuration allows it (threats §3). False: it is an ordinary failure. */
  #follow(response: SipResponse, hop: HuntHop): boolean {
    if (response.status < 300 || response.status > 399 || this.#redirected) return false
    for (const uri of redirectUris(response.header('contact') ?? '')) {
      const to = hop.redirects.find(({ host }) => host === hostOf(uri).toLowerCase())
      if (!to) continue
      this.#redirected = true
      // Neither credentials nor the verification of one host apply to another.
      const { proxy: _flow, auth: _auth, tls: _tls, ...target } = hop
      const { host: _host, ...own } = to
      const headers = { ...hop.headers, ...hop.diverted?.(uri) }
      this.#hops.unshift({ ...target, ...own, headers, uri, target: `${hop.target} (redirected)` })
      return true
    }
    return false
  }

  async #progress(leg: OutboundLeg, response: SipResponse, early: boolean): Promise<void> {
    if (this.#ended || leg.ended || leg.answered) return
    if (early) this.#mediaPassed = (await this.#listener.early(leg, response)) || this.#mediaPassed
    else this.#listener.ringing(leg, response)
  }

  #firstAnswer(): void {
    if (this.#started_ms === null || this.#pdd_ms !== null) return
    this.#pdd_ms = Math.round(this.#ctx.clock.monotonic_ms() - this.#started_ms)
    this.#ctx.metrics.pdd.observe(this.#pdd_ms / 1000)
  }

  #forward(): LegListener {
    const listener = this.#listener
    return {
      ended: (leg, facts) => listener.ended(leg, facts),
      digit: (leg, digit, by) => listener.digit(leg, digit, by),
      refer: (leg, request) => listener.refer(leg, request),
      notify: (leg, request) => listener.notify(leg, request),
      held: (leg, held) => listener.held(leg, held),
      measured: (leg, figures) => listener.measured(leg, figures),
      message: (leg, request) => listener.message(leg, request),
      media: (leg, event) => listener.media(leg, event),
    }
  }

  #record(hop: HuntHop, sequence: number) {
    const { clock, metrics } = this.#ctx
    let provisional = false
    const { target, transport, carrier_id } = hop
    this.#keep({ step: 'attempt', attempt: { sequence, target, transport, carrier_id }, at_ms: clock.now() })
    const write = (changes: Extract<AttemptStep, { step: 'attempt_changed' }>['changes']): void =>
      this.#keep({ step: 'attempt_changed', sequence, changes })
    return {
      sent: (sip_call_id: string): void => write({ sip_call_id }),
      provisional: (response: SipResponse): void => {
        if (provisional) return
        provisional = true
        write({ provisional_at: iso(clock.now()), address: response.source.address })
      },
      ended: (
        result: NonNullable<CallAttemptTable['result']>,
        sip_code: number | null,
        reason: string | null,
        address: string | null,
      ): void => {
        metrics.attempts.inc({ result })
        write({ ended_at: iso(clock.now()), result, sip_code, reason, ...(address ? { address } : {}) })
      },
    }
  }
}

function detailOf(outcome: Exclude<HopOutcome, { kind: 'answered' }>): string {
  if (outcome.kind === 'refused') return `${outcome.response.status} ${outcome.response.reason}`
  return outcome.kind === 'silent' ? 'no answer within 5 s' : outcome.detail
}

/** The SIP server generates responses for silence (408) and unreachable targets (503, 416). These have no source. */
function failureOf(outcome: Exclude<HopOutcome, { kind: 'answered' }>): AttemptFailure {
  if (outcome.kind === 'silent') return { kind: 'no_response' }
  if (outcome.kind === 'bad_answer') return { kind: 'response', code: outcome.code }
  if (outcome.kind === 'failed') return { kind: 'transport' }
  const { status, source } = outcome.response
  const made_up = source.address === '' || source.port === 0
  if (made_up && status === 408) return { kind: 'no_response' }
  if (made_up && (status === 503 || status === 416)) return { kind: 'transport' }
  return { kind: 'response', code: status }
}
