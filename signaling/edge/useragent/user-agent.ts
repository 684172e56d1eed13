import { listenerAddress, SipDialog } from '../dialog/dialog.ts'
import { newCallId, newSequence, newTag } from '../sip/ids.ts'
import { bytesOf, Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import type { NextHop, SentRequest, StackOptions } from '../stack.ts'
import { EdgeStack } from '../stack.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import { type CallEvents, UserAgentCall } from './call.ts'
import { addParts, IncomingRequest, type MessageParts } from './message-parts.ts'

// A small user agent on the SIP stack for peers that are not part of the edge: the sandbox carrier and test peers. It
// places and receives calls. Its owner handles media and SDP.

interface UserAgentOptions extends Omit<StackOptions, 'user'> {
  /** Called for a new call, which the owner answers by the call's methods. Default: calls get 480. */
  readonly incoming?: (call: UserAgentCall) => void
  /** Called for an out-of-dialog request other than INVITE. Default: OPTIONS gets 200, BYE 481 and all others 405. */
  readonly request?: (request: IncomingRequest) => void
  /** The user part of our Contact. */
  readonly user?: string
}

interface CallOptions extends MessageParts {
  /** The From value without a tag, such as `"Bob" <sip:bob@example.org>`. Default: our Contact. */
  readonly from?: string
  readonly to?: string
  /** The URI to which the INVITE is sent, instead of its request-URI. */
  readonly hop?: string
  readonly events?: CallEvents
}

export class UserAgent {
  readonly stack: EdgeStack
  readonly #options: UserAgentOptions
  readonly #calls = new Map<string, UserAgentCall>()

  private constructor(stack: EdgeStack, options: UserAgentOptions) {
    this.stack = stack
    this.#options = options
  }

  static async open(options: UserAgentOptions): Promise<UserAgent> {
    let agent: UserAgent | undefined
    const stack = await EdgeStack.open({
      ...options,
      user: {
        request: transaction => agent?.takeRequest(transaction),
        ack: ack => agent?.takeAck(ack),
        cancel: (cancel, invite) => agent?.takeCancel(cancel, invite),
      },
    })
    agent = new UserAgent(stack, options)
    return agent
  }

  /** The calls that have not ended. */
  get calls(): readonly UserAgentCall[] {
    return [...this.#calls.values()]
  }

  /** Returns the bound port of a transport. */
  port(protocol: string): number {
    return this.stack.transport.listeners.find(l => l.protocol === protocol)?.port ?? 0
  }

  close(): void {
    this.stack.close()
  }

  /** Places a call. */
  call(uri: string, options: CallOptions = {}): UserAgentCall {
    const tag = newTag()
    const call_id = newCallId()
    const seq = newSequence()
    const call = new UserAgentCall(this, 'out', options.events ?? {})
    this.add(call, call_id, tag)
    call.dial(
      listener => {
        const contact = listenerAddress(listener, this.#options.user)
        const draft = Draft.request('INVITE', uri)
          .add('Max-Forwards', '70')
          .add('From', `${options.from === undefined ? contact : bytesOf(options.from)};tag=${tag}`)
          .add('To', options.to ?? `<${uri}>`)
          .add('Call-ID', call_id)
          .add('CSeq', `${seq} INVITE`)
          .add('Contact', contact)
        addParts(draft, options)
        return draft
      },
      { uri: options.hop ?? uri },
      { tag, call_id, seq },
    )
    return call
  }

  /** Sends an out-of-dialog request. Resolves with its final response, or undefined without one. */
  async request(
    method: string,
    uri: string,
    parts: MessageParts & { readonly hop?: string; readonly to?: string } = {},
  ): Promise<SipMessage | undefined> {
    const tag = newTag()
    const call_id = newCallId()
    const seq = newSequence()
    const hop: NextHop = { uri: parts.hop ?? uri }
    return await new Promise(resolve => {
      this.stack.request(
        method,
        hop,
        listener => {
          const own = listenerAddress(listener, this.#options.user)
          const draft = Draft.request(method, uri)
            .add('Max-Forwards', '70')
            .add('From', `${own};tag=${tag}`)
            .add('To', parts.to ?? `<${uri}>`)
            .add('Call-ID', call_id)
            .add('CSeq', `${seq} ${method}`)
          if (method === 'REGISTER' || method === 'SUBSCRIBE') draft.add('Contact', own)
          addParts(draft, parts)
          return draft
        },
        {
          response: response => {
            if (response.status >= 200) resolve(response)
          },
          timeout: () => resolve(undefined),
          unreachable: () => resolve(undefined),
        },
      )
    })
  }

  add(call: UserAgentCall, call_id: string, local_tag: string): void {
    this.#calls.set(`${call_id} ${local_tag}`, call)
  }

  remove(call_id: string, local_tag: string): void {
    this.#calls.delete(`${call_id} ${local_tag}`)
  }

  contact(listener: SentRequest['listener']): string {
    return listenerAddress(listener, this.#options.user)
  }

  takeRequest(transaction: ServerTransaction): void {
    const { request, received } = transaction
    const tag = request.to_tag
    if (tag !== '') {
      const call = this.#calls.get(`${request.call_id} ${tag}`)
      if (call) call.takeRequest(transaction)
      else transaction.respond(draftResponse(request, 481, ''), 481)
      return
    }
    const own = newTag()
    if (request.method === 'INVITE') {
      transaction.respond(draftResponse(request, 100, ''), 100)
      const { incoming } = this.#options
      if (!incoming) {
        transaction.respond(draftResponse(request, 480, own), 480)
        return
      }
      const call = new UserAgentCall(this, 'in', {})
      const dialog = SipDialog.asServer(request, received, own)
      dialog.contact = this.contact(received.listener)
      this.add(call, request.call_id, own)
      call.receive(transaction, dialog)
      incoming(call)
      return
    }
    if (this.#options.request) this.#options.request(new IncomingRequest(transaction, own))
    else {
      const status = request.method === 'OPTIONS' ? 200 : request.method === 'BYE' ? 481 : 405
      transaction.respond(draftResponse(request, status, own), status)
    }
  }

  takeAck(ack: SipMessage): void {
    this.#calls.get(`${ack.call_id} ${ack.to_tag}`)?.takeAck(ack)
  }

  takeCancel(cancel: ServerTransaction, invite: ServerTransaction | undefined): void {
    const open = invite && !invite.answered
    cancel.respond(draftResponse(cancel.request, open ? 200 : 481, newTag()), open ? 200 : 481)
    if (!open) return
    for (const call of this.#calls.values()) if (call.takeCancel(invite)) return
    invite.respond(draftResponse(invite.request, 487, newTag()), 487)
  }
}
