import { Dialog } from '../edge/dialog/dialog.ts'
import { newTag } from '../edge/sip/ids.ts'
import { draftResponse, type SipMessage } from '../edge/sip/message.ts'
import type { SipStack } from '../edge/stack.ts'
import type { WheelTimer } from '../edge/timers.ts'
import type { ServerTransaction } from '../edge/transaction/server.ts'
import type { Behaviour, SandboxCall } from './behaviours.ts'
import type { Remote, RtpSession } from './rtp.ts'
import { answerFor, remoteOf } from './sdp.ts'

export interface CallParts {
  readonly stack: SipStack
  readonly invite: ServerTransaction
  readonly called: string
  readonly rtp: RtpSession
  readonly remote: Remote
  /** Address in SDP. */
  readonly address: string
  readonly ended: () => void
}

/** One call that reached the sandbox carrier: a UAS dialog (RFC 3261 §13.3) and an RTP session, both ended by `end`. */
export class CallOfSandbox implements SandboxCall {
  readonly called: string
  readonly rtp: RtpSession
  readonly key: string
  readonly #parts: CallParts
  readonly #tag: string
  readonly #dialog: Dialog
  readonly #over: (() => void)[] = []
  #remote: Remote
  #acknowledged: (() => void) | undefined
  #repeat: WheelTimer | undefined
  #state: 'proceeding' | 'answered' | 'ended' = 'proceeding'

  constructor(parts: CallParts) {
    this.#parts = parts
    this.#remote = parts.remote
    this.called = parts.called
    this.rtp = parts.rtp
    this.#tag = newTag()
    this.#dialog = Dialog.asServer(parts.invite.request, parts.invite.received, this.#tag)
    this.key = `${parts.invite.request.callId}\0${this.#tag}`
  }

  /** Runs the behaviour; whatever it still waits for when the call ends is left waiting, and collected. */
  run(behaviour: Behaviour, failed: (error: unknown) => void): void {
    behaviour(this).catch(error => {
      failed(error)
      if (this.#state === 'proceeding') this.refuse(500)
      else this.hangUp()
    })
  }

  ring(): void {
    this.#respond(180)
  }

  earlyMedia(): void {
    this.#respond(183, true)
    this.rtp.start(this.#remote)
  }

  answer(): Promise<void> {
    if (this.#state !== 'proceeding') return new Promise(() => undefined)
    this.#respond(200, true)
    this.#state = 'answered'
    this.rtp.start(this.#remote)
    this.#repeatUntilAck(this.#parts.stack.transactions.scale.t1)
    return new Promise(resolve => {
      this.#acknowledged = resolve
    })
  }

  refuse(status: number): void {
    if (this.#state !== 'proceeding') return
    this.#respond(status)
    this.end()
  }

  hangUp(): void {
    if (this.#state !== 'answered') return
    const dialog = this.#dialog
    const nothing = (): void => undefined
    const seq = dialog.nextSeq()
    this.#parts.stack.request('BYE', dialog.nextHop(), () => dialog.draft('BYE', seq), {
      response: nothing,
      timeout: nothing,
      unreachable: nothing,
    })
    this.end()
  }

  wait(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = this.#parts.stack.transactions.wheel.after(ms, resolve)
      this.#over.push(() => timer.cancel())
    })
  }

  acknowledged(): void {
    this.#repeat?.cancel()
    this.#acknowledged?.()
    this.#acknowledged = undefined
  }

  canceled(): void {
    if (this.#state === 'proceeding') this.refuse(487)
  }

  /** A request inside the dialog: hold and other new offers are answered, BYE ends, the rest is understood politely. */
  within(transaction: ServerTransaction): void {
    const { request } = transaction
    if (request.method === 'INVITE' || (request.method === 'UPDATE' && request.body !== '')) {
      this.#reoffered(transaction)
      return
    }
    transaction.respond(draftResponse(request, 200, this.#tag), 200)
    if (request.method === 'BYE') this.end()
  }

  end(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#repeat?.cancel()
    for (const cancel of this.#over) cancel()
    this.rtp.close()
    this.#parts.ended()
  }

  #reoffered(transaction: ServerTransaction): void {
    const { request } = transaction
    const remote = request.body === '' ? this.#remote : remoteOf(request.body)
    if (!remote) {
      transaction.respond(draftResponse(request, 488, this.#tag), 488)
      return
    }
    this.#remote = remote
    this.rtp.start(remote)
    this.#dialog.refreshTarget(request, transaction.received.source, true)
    const draft = this.#withSdp(draftResponse(request, 200, this.#tag))
    transaction.respond(draft, 200)
  }

  #respond(status: number, with_sdp = false): void {
    const { invite } = this.#parts
    if (this.#state !== 'proceeding' || invite.answered) return
    const draft = draftResponse(invite.request, status, this.#tag)
    // A dialog needs the proxies of the request in its answer (RFC 3261 §12.1.1).
    for (const route of invite.request.list('record-route')) draft.add('Record-Route', route)
    draft.add('Contact', this.#dialog.contact)
    invite.respond(with_sdp ? this.#withSdp(draft) : draft, status)
  }

  #withSdp(draft: ReturnType<typeof draftResponse>): ReturnType<typeof draftResponse> {
    if (draft.get('contact') === undefined) draft.add('Contact', this.#dialog.contact)
    draft.add('Content-Type', 'application/sdp')
    draft.body = answerFor(this.#remote, this.#parts.address, this.rtp.port)
    return draft
  }

  /** RFC 3261 §13.3.1.4: the 200 is repeated until the ACK comes; without one the call ends after 64×T1. */
  #repeatUntilAck(delay_ms: number, waited_ms = 0): void {
    const { stack, invite } = this.#parts
    const { t1, t2 } = stack.transactions.scale
    this.#repeat = stack.transactions.wheel.after(delay_ms, () => {
      if (waited_ms > 64 * t1) {
        this.hangUp()
        return
      }
      if (!invite.reliable) invite.repeat()
      this.#repeatUntilAck(Math.min(delay_ms * 2, t2), waited_ms + delay_ms)
    })
  }
}

/** The call that a message inside a dialog belongs to. */
export const keyOf = (message: SipMessage): string => `${message.callId}\0${message.toTag}`
