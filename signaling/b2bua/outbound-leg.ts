import { customHeaders } from '../../core/domain/calls/custom-headers.ts'
import { SUPPORTED } from '../../core/domain/calls/option-tags.ts'
import { tagOf } from '../../core/domain/sip/uri.ts'
import { readSeconds } from '../../core/domain/sip/values.ts'
import type { Credentials, Headers, InviteResult, OutboundInvite, SipResponse } from '../drachtio/types.ts'
import { Leg, type LegEnd, type LegListener, type LegOptions } from './leg.ts'
import { ALLOW } from './methods.ts'
import type { DialogTags } from './refer-to.ts'
import { answerCode } from './refusal.ts'
import type { LegServices } from './services.ts'
import { offerHeaders } from './session-timer.ts'

export interface InviteFacts {
  readonly uri: string
  readonly proxy?: string
  readonly headers: Headers
  /** Answers challenges to the INVITE and within its dialog. */
  readonly auth?: Credentials
}

const MAX_FORKS = 16

interface OutboundListener extends LegListener {
  sent(facts: { readonly call_id: string }): void
  /** Reports each 18x after its SDP, if any, has been applied. `early`: media can be heard. */
  progress(response: SipResponse, early: boolean): void
}

export type LegOutcome =
  | { readonly kind: 'answered'; readonly response: SipResponse }
  | { readonly kind: 'refused'; readonly response: SipResponse }
  /** The peer answered with SDP that we cannot use, and we have hung up. `code`: what that means for the caller. */
  | { readonly kind: 'bad_answer'; readonly code: 488 | 502; readonly detail: string }
  | { readonly kind: 'failed'; readonly detail: string; readonly link_lost: boolean }

/** What is kept of the answer to the INVITE: its custom headers, and the address that it came from. */
interface Answer {
  readonly headers: Headers
  readonly address: string
}

interface Unusable {
  /** Null when the answer is not to blame. */
  readonly code: 488 | 502 | null
  readonly detail: string
}

/** RFC 3261 §13.2.1: the 2xx to an INVITE with an offer has the answer, unless a reliable 18x had it. */
const NO_SDP: Unusable = { code: 502, detail: 'the 200 has no SDP' }

/** The leg of one INVITE that we send, from the INVITE to the leg's end. */
export class OutboundLeg extends Leg {
  readonly #listener: OutboundListener
  #invite: OutboundInvite | null = null
  #call_id: string | null = null
  /** The SDP that was taken last, and the last of each fork by its To tag. */
  #earlySdp = ''
  readonly #earlySdps = new Map<string, string>()
  readonly #early = new Map<string, DialogTags>()
  /** Applies the SDP of provisional responses one after the other, and that of the final response last. */
  #taking: Promise<void> = Promise.resolve()
  #accepted = false
  #answer: Answer | null = null
  /** A BYE from the callee that came while its answer was being applied. */
  #parting: LegEnd | null = null

  constructor(ctx: LegServices, options: LegOptions & { readonly listener: OutboundListener }) {
    super(ctx, options)
    this.#listener = options.listener
  }

  override get sip_call_id(): string | null {
    return this.#call_id
  }

  override get accepted(): boolean {
    return this.#accepted
  }

  override get callingDialog(): boolean {
    return true
  }

  /** The early dialogs of our INVITE, one per fork. */
  get earlyDialogs(): DialogTags[] {
    return this.answered || this.ended ? [] : [...this.#early.values()]
  }

  /** Sends the INVITE and waits for the final answer. @throws MediaRefusal before anything is sent */
  async place(facts: InviteFacts): Promise<LegOutcome> {
    const body = await this.makeOffer()
    this.unanswered = 'ours'
    if (this.ended) return { kind: 'failed', detail: 'ended before the INVITE left', link_lost: false }
    const outcome = await this.#try(facts, body, offerHeaders())
    if (outcome.kind !== 'refused' || outcome.response.status !== 422 || this.ended) return outcome
    // RFC 4028 §7.3: the interval was too small for an element on the path. Retry once with the Min-SE that it gave, or
    // without an interval when it gave none that we can use.
    const wanted = readSeconds(outcome.response.header('min-se')) ?? 0
    return this.#try(facts, body, wanted > 90 && wanted <= 86_400 ? offerHeaders(undefined, wanted) : {})
  }

  async #try(facts: InviteFacts, body: string, timer: Headers): Promise<LegOutcome> {
    this.#invite = this.ctx.sip.invite(
      {
        ...facts,
        headers: {
          Allow: ALLOW,
          Supported: SUPPORTED,
          ...timer,
          'Content-Type': 'application/sdp',
          ...facts.headers,
          ...this.session_id.headers,
        },
        body,
      },
      {
        handler: this.handler,
        sent: ({ call_id }) => {
          this.#call_id = call_id
          this.#listener.sent({ call_id })
        },
        provisional: response => this.#provisional(response),
        acknowledging: this.session_id.acknowledging,
      },
    )
    return this.#final(await this.#invite.result)
  }

  #provisional(response: SipResponse): void {
    this.session_id.heard(response)
    this.knownFrom(response.source.address)
    const remote_tag = tagOf(response.header('to') ?? '')
    if (response.status > 100 && remote_tag !== '' && this.#early.size < MAX_FORKS) {
      const { call_id } = response
      this.#early.set(remote_tag, { call_id, local_tag: tagOf(response.header('from') ?? ''), remote_tag })
    }
    const { sdp } = response.content()
    // At once: the peer may send its next offer while we apply this answer.
    if (sdp !== '') this.unanswered = null
    this.#taking = this.#taking.then(async () => {
      if (this.ended) return
      if (sdp === '') return this.#listener.progress(response, false)
      const early = await this.#take(sdp)
      if (early === null && this.#early.has(remote_tag)) this.#earlySdps.set(remote_tag, sdp)
      if (!this.ended) this.#listener.progress(response, early === null)
    })
  }

  async #final(result: InviteResult): Promise<LegOutcome> {
    this.#accepted = result.kind === 'answered'
    if (this.#accepted) this.unanswered = null
    await this.#taking
    if (result.kind === 'failed') return { kind: 'failed', detail: result.detail, link_lost: result.link_lost }
    const { response } = result
    this.session_id.heard(response)
    if (result.kind === 'refused') return { kind: 'refused', response }
    this.knownFrom(response.source.address)
    const dialog = this.session_id.dialog(result.dialog)
    if (this.ended) {
      // The 200 crossed our CANCEL.
      void dialog.bye()
      return { kind: 'failed', detail: 'answered after it was ended', link_lost: false }
    }
    // RFC 3262 §5: a 200 without SDP leaves that of a reliable 18x in force. Another fork may have sent its own since.
    const sdp = response.content().sdp || this.#earlySdps.get(tagOf(response.header('to') ?? '')) || ''
    const bad = sdp === '' && this.#earlySdp === '' ? NO_SDP : sdp === '' ? null : await this.#take(sdp)
    if (bad) {
      // RFC 3261 §13.2.2.4: a 2xx whose SDP cannot be used gets an ACK and a BYE.
      void dialog.bye(bad.code === null ? {} : { Reason: 'SIP;cause=488;text="Not Acceptable Here"' })
      return bad.code === null
        ? { kind: 'failed', detail: bad.detail, link_lost: false }
        : { kind: 'bad_answer', code: bad.code, detail: bad.detail }
    }
    if (this.ended) {
      void dialog.bye()
      return { kind: 'failed', detail: 'ended while it was answered', link_lost: false }
    }
    this.confirmed(result.dialog, {
      expires: response.header('session-expires') ?? response.header('x'),
      allow: response.header('allow'),
      role: 'uac',
    })
    this.#answer = { headers: customHeaders(response.headers), address: response.source.address }
    const parting = this.#parting
    // The owner learns of the answer before it learns of the BYE.
    if (parting) setImmediate(() => super.farEnd(parting))
    return { kind: 'answered', response }
  }

  /** Null before the leg is answered. */
  get answer(): Answer | null {
    return this.#answer
  }

  protected override farEnd(facts: LegEnd): void {
    if (this.answered) {
      super.farEnd(facts)
      return
    }
    this.#parting = facts
    // Cancels the INVITE when the callee hangs up before a final response; after one, this does nothing.
    this.#invite?.cancel(this.session_id.headers)
  }

  /** Applies an SDP answer. Returns null, or what is wrong. */
  async #take(sdp: string): Promise<Unusable | null> {
    if (sdp === this.#earlySdp) return null
    try {
      await this.takeAnswer(sdp)
      this.#earlySdp = sdp
      return null
    } catch (error) {
      this.log.info({ err: error }, 'SDP of an answer cannot be used')
      return { code: answerCode(error), detail: error instanceof Error ? error.message : String(error) }
    }
  }

  protected override endSignaling(headers: Headers): void {
    if (this.answered) super.endSignaling(headers)
    else this.#invite?.cancel({ ...headers, ...this.session_id.headers })
  }
}
