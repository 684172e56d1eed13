import { SipDialog } from '../dialog/dialog.ts'
import { type Draft, decodedText, draftResponse, type SipMessage } from '../sip/message.ts'
import { headerOf } from '../sip/sent-text.ts'
import type { NextHop, OutgoingRequest, SentRequest } from '../stack.ts'
import type { WheelTimer } from '../timers.ts'
import { UNHEARD } from '../transaction/client.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import { isReliable, type Listener } from '../transport/types.ts'
import { addParts, IncomingRequest, type MessageParts } from './message-parts.ts'
import type { UserAgent } from './user-agent.ts'

/** The callbacks of a call's owner. */
export interface CallEvents {
  /** A 1xx above 100 to our INVITE arrived. */
  progress?: (response: SipMessage) => void
  /** A 2xx to our INVITE arrived. The ACK was sent, with the body that `ackBody` returned. */
  answered?: (response: SipMessage) => void
  /** Our INVITE failed. Without a response, it timed out or no peer could be reached. */
  failed?: (response: SipMessage | undefined) => void
  /** The ACK of our 2xx arrived. */
  acknowledged?: (ack: SipMessage) => void
  /** A request in the dialog other than BYE arrived. Default: a re-INVITE gets 488, all others get 200. */
  request?: (request: IncomingRequest) => void
  /** The call ended. 'refused': we rejected it. 'lost': the ACK of our 2xx did not arrive. */
  ended?: (why: 'peer' | 'us' | 'cancelled' | 'refused' | 'lost') => void
  /** Returns the body of the ACK when the 2xx carried the offer. */
  ackBody?: (response: SipMessage) => string | undefined
}

/** A call of a UserAgent in either direction. */
export class UserAgentCall {
  readonly direction: 'in' | 'out'
  readonly events: CallEvents
  state: 'inviting' | 'answered' | 'ended' = 'inviting'
  /** The INVITE of an incoming call. */
  invite: SipMessage | undefined
  dialog: SipDialog | undefined
  readonly #agent: UserAgent
  #transaction: ServerTransaction | undefined
  #outgoing: OutgoingRequest | undefined
  #ids = { call_id: '', tag: '' }
  #resend: WheelTimer | undefined
  #deadline: WheelTimer | undefined
  #answer_seq = -1
  #provisional = false
  #cancelling = false
  #ack: SentRequest | undefined

  constructor(agent: UserAgent, direction: 'in' | 'out', events: CallEvents) {
    this.#agent = agent
    this.direction = direction
    this.events = events
  }

  get call_id(): string {
    return this.#ids.call_id
  }

  /** The peer's SDP in the INVITE of an incoming call. */
  get offer(): string {
    return decodedText(this.invite?.body ?? '')
  }

  // Incoming calls

  /** Sends a provisional response, such as 180 or 183. */
  ring(status: number, parts: MessageParts = {}): void {
    this.#respond(status, parts)
  }

  /** Sends a 200 and, over UDP, retransmits it until the ACK arrives. */
  answer(parts: MessageParts): void {
    if (this.state !== 'inviting' || !this.#transaction) return
    this.state = 'answered'
    const text = this.#respond(200, parts)
    if (text !== undefined) this.#awaitAck(this.#transaction, text)
  }

  /** Sends a final response of 300 or above. */
  reject(status: number, parts: MessageParts & { readonly reason?: string } = {}): void {
    if (this.state !== 'inviting') return
    this.#respond(status, parts)
    this.#end('refused')
  }

  receive(transaction: ServerTransaction, dialog: SipDialog): void {
    this.#transaction = transaction
    this.invite = transaction.request
    this.dialog = dialog
    this.#ids = { call_id: dialog.call_id, tag: dialog.local_tag }
  }

  // Either direction

  /** Ends the call: by BYE once it is answered, before that by CANCEL (outgoing) or 480 (incoming). */
  hangUp(parts: MessageParts = {}): void {
    if (this.state === 'ended') return
    if (this.state === 'inviting') {
      if (this.direction === 'in') this.reject(480)
      else this.#cancel()
      return
    }
    void this.send('BYE', parts)
    this.#end('us')
  }

  /**
   * Sends a request in the dialog, such as INFO, UPDATE, REFER or a re-INVITE. Resolves with its final response, or
   * undefined without one. Acknowledges a 2xx to INVITE.
   */
  async send(method: string, parts: MessageParts = {}): Promise<SipMessage | undefined> {
    const { dialog } = this
    if (!dialog) return undefined
    const seq = dialog.nextSeq()
    return await new Promise(resolve => {
      this.#agent.stack.request(
        method,
        dialog.nextHop(),
        () => {
          const draft = dialog.draft(method, seq)
          if (method === 'INVITE' || method === 'UPDATE' || method === 'REFER') draft.add('Contact', dialog.contact)
          addParts(draft, parts)
          return draft
        },
        {
          response: (response, from) => {
            if (response.status < 200) return
            if (method === 'INVITE' && response.status < 300) {
              dialog.refreshTarget(response, from, false)
              this.#sendAck(dialog, seq, response)
            }
            resolve(response)
          },
          timeout: () => resolve(undefined),
          unreachable: () => resolve(undefined),
        },
      )
    })
  }

  // Called by the agent

  dial(build: (listener: Listener) => Draft, hop: NextHop, ids: { tag: string; call_id: string; seq: number }): void {
    this.#ids = { call_id: ids.call_id, tag: ids.tag }
    this.#outgoing = this.#agent.stack.request('INVITE', hop, build, {
      response: (response, from, sent) => this.#response(response, from, sent, ids.seq),
      timeout: () => this.#failed(undefined),
      unreachable: () => this.#failed(undefined),
    })
  }

  takeRequest(transaction: ServerTransaction): void {
    const { request, received } = transaction
    const { dialog } = this
    if (!dialog || request.cseq.seq < dialog.remote_seq) {
      transaction.respond(draftResponse(request, dialog ? 500 : 481, ''), dialog ? 500 : 481)
      return
    }
    dialog.remote_seq = request.cseq.seq
    if (request.method === 'BYE') {
      transaction.respond(draftResponse(request, 200, ''), 200)
      if (this.#transaction && !this.#transaction.answered) {
        this.#transaction.respond(draftResponse(this.#transaction.request, 487, dialog.local_tag), 487)
      }
      this.#end('peer')
      return
    }
    if (request.method === 'INVITE' || request.method === 'UPDATE') {
      dialog.refreshTarget(request, received.source, received.protocol === 'udp')
    }
    if (request.method === 'INVITE') {
      transaction.respond(draftResponse(request, 100, ''), 100)
      const respond = transaction.respond.bind(transaction)
      transaction.respond = (draft: Draft, status: number): string | undefined => {
        const text = respond(draft, status)
        if (text !== undefined && status >= 200 && status < 300) this.#awaitAck(transaction, text)
        return text
      }
    }
    const incoming = new IncomingRequest(transaction, '', dialog.contact)
    if (this.events.request) this.events.request(incoming)
    else incoming.answer(request.method === 'INVITE' ? 488 : 200)
  }

  takeAck(ack: SipMessage): void {
    if (ack.cseq.seq !== this.#answer_seq) return
    this.#answer_seq = -1
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.events.acknowledged?.(ack)
  }

  takeCancel(invite: ServerTransaction): boolean {
    if (this.#transaction !== invite || this.state !== 'inviting') return false
    this.#respond(487, {})
    this.#end('cancelled')
    return true
  }

  #respond(status: number, parts: MessageParts & { readonly reason?: string }): string | undefined {
    const transaction = this.#transaction
    const { dialog } = this
    if (!transaction || !dialog) return undefined
    const draft = draftResponse(transaction.request, status, dialog.local_tag, parts.reason)
    if (status > 100 && status < 300) {
      for (const value of transaction.request.lines('record-route')) draft.add('Record-Route', value)
      draft.add('Contact', dialog.contact)
    }
    addParts(draft, parts)
    return transaction.respond(draft, status)
  }

  #awaitAck(transaction: ServerTransaction, text: string): void {
    const { wheel, scale } = this.#agent.stack.transactions
    this.#answer_seq = transaction.request.cseq.seq
    this.#deadline?.cancel()
    this.#deadline = wheel.after(64 * scale.t1, () => {
      this.#resend?.cancel()
      if (this.state === 'ended') return
      void this.send('BYE')
      this.#end('lost')
    })
    if (isReliable(transaction.received.protocol)) return
    const again = (delay_ms: number): void => {
      this.#resend = wheel.after(delay_ms, () => {
        transaction.repeat(text)
        again(Math.min(delay_ms * 2, scale.t2))
      })
    }
    again(scale.t1)
  }

  #response(response: SipMessage, from: { host: string; port: number }, sent: SentRequest, seq: number): void {
    if (!this.#provisional && response.status < 200) {
      this.#provisional = true
      if (this.#cancelling) this.#agent.stack.cancel(sent)
    }
    if (response.status === 100) return
    if (response.to_tag !== '' && this.state === 'inviting' && response.status < 300) {
      this.#establish(response, from, sent)
    }
    if (response.status < 200) {
      const { dialog } = this
      const rseq = response.get('rseq')
      if (dialog && rseq !== undefined && response.lists('require', '100rel')) {
        void this.send('PRACK', { headers: { RAck: `${rseq} ${seq} INVITE` } })
      }
      this.events.progress?.(response)
      return
    }
    if (response.status >= 300) {
      this.#failed(response)
      return
    }
    const { dialog } = this
    if (!dialog) return
    if (this.state !== 'inviting') {
      if (response.to_tag === dialog.remote_tag && this.#ack) this.#repeatAck(this.#ack)
      return
    }
    this.state = 'answered'
    this.#sendAck(dialog, seq, response)
    if (this.#cancelling) {
      this.hangUp()
      return
    }
    this.events.answered?.(response)
  }

  #establish(response: SipMessage, from: { host: string; port: number }, sent: SentRequest): void {
    const { protocol } = sent.destination
    if (!this.dialog) {
      const said = (name: string): string => headerOf(sent.text, name) ?? ''
      this.dialog = SipDialog.asClient({
        call_id: this.#ids.call_id,
        local_tag: this.#ids.tag,
        local: said('From'),
        remote: said('To'),
        seq: response.cseq.seq,
        contact: said('Contact'),
        uri: sent.text.slice(7, sent.text.indexOf(' SIP/2.0')),
      })
    }
    const connection = this.#agent.stack.transport.connectionFor(sent.destination)
    this.dialog.establish(response, from, { protocol, connection })
  }

  #sendAck(dialog: SipDialog, seq: number, response: SipMessage): void {
    const body = this.events.ackBody?.(response)
    this.#agent.stack.request(
      'ACK',
      dialog.nextHop(),
      () => {
        const draft = dialog.draft('ACK', seq)
        addParts(draft, body === undefined ? {} : { body })
        return draft
      },
      {
        ...UNHEARD,
        sent: sent => {
          this.#ack = sent
        },
      },
    )
  }

  #repeatAck(ack: SentRequest): void {
    this.#agent.stack.transport.send(ack.destination, ack.text, true, () => undefined)
  }

  #cancel(): void {
    if (this.#cancelling) return
    this.#cancelling = true
    const sent = this.#outgoing?.sent
    if (sent && this.#provisional) this.#agent.stack.cancel(sent)
  }

  #failed(response: SipMessage | undefined): void {
    if (this.state !== 'inviting') return
    this.state = 'ended'
    this.#release()
    if (this.#cancelling) this.events.ended?.('cancelled')
    else this.events.failed?.(response)
  }

  #end(why: 'peer' | 'us' | 'cancelled' | 'refused' | 'lost'): void {
    if (this.state === 'ended') return
    this.state = 'ended'
    this.#release()
    this.events.ended?.(why)
  }

  #release(): void {
    this.#resend?.cancel()
    this.#deadline?.cancel()
    this.#agent.remove(this.#ids.call_id, this.#ids.tag)
  }
}
