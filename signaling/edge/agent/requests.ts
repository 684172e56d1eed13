import { readRAck } from '../../../core/domain/sip/values.ts'
import { Authorizer } from '../../../core/runtime/sip/authorizer.ts'
import type { ControlClient } from '../control/client.ts'
import type { CommandMessage } from '../control/command.ts'
import { dialogMessage, plainReply, requestSentReply } from '../control/wire.ts'
import { contactFor, SipDialog, viaFor } from '../dialog/dialog.ts'
import { newBranch, newUuid } from '../sip/ids.ts'
import type { Draft, SipMessage } from '../sip/message.ts'
import { bodyOf, headerOf } from '../sip/sent-text.ts'
import { tagOf } from '../sip/uri.ts'
import type { NextHop, RequestEvents, SentRequest } from '../stack.ts'
import { UNHEARD } from '../transaction/client.ts'
import type { Listener } from '../transport/types.ts'
import { ackOf, cancelFor } from './compose.ts'
import type { AgentCore } from './core.ts'
import { AgentLeg, type PendingClient } from './leg.ts'
import { requestInDialog } from './own-requests.ts'
import { textFor } from './pending.ts'
import { armAfterResponse, armAfterUpdate } from './session-timer.ts'
import { subscribed } from './subscription.ts'

// Requests that applications sent, and the network's responses to them (drachtio-control-protocol.md §10, §11).

export class SentRequests {
  readonly #core: AgentCore

  constructor(core: AgentCore) {
    this.#core = core
  }

  /** Adds a request that an application sends. */
  add(
    app: ControlClient,
    { method, credentials }: CommandMessage,
    dialog_id: string,
    leg: AgentLeg | undefined,
  ): PendingClient {
    const pending: PendingClient = {
      id: newUuid(),
      method,
      app,
      dialog_id,
      leg,
      credentials,
      in_dialog: leg !== undefined,
      hold: leg ?? this.#core.newHold(),
      outgoing: undefined,
      provisional: false,
      finished: false,
      cancel: 'none',
      cancel_text: '',
      ack: undefined,
      answered_tag: '',
      rseqs: undefined,
      reliable: undefined,
      deadline: undefined,
    }
    this.#core.clients.set(pending.id, pending)
    return pending
  }

  /** Sends a request and reports its outcome to its application. */
  send(pending: PendingClient, request_id: string, hop: NextHop, build: (listener: Listener) => Draft): void {
    const { app } = pending
    const opens = pending.method === 'INVITE' && !pending.in_dialog
    const patience_ms = opens ? this.#core.settings.no_response_ms : undefined
    const events: RequestEvents = {
      sent: sent => {
        app.send(requestSentReply(request_id, this.#core.wireOut(sent), pending.id, sent.text))
        // The library listens for the response before it reads on. Only a new request may be awaited first.
        if (!pending.in_dialog) this.#core.introduced(pending.hold)
      },
      response: (response, from, sent) => this.#response(pending, response, from, sent),
      timeout: sent => this.#fabricated(pending, sent, 408, 'Request Timeout'),
      unreachable: (why, sent) => this.#unreachable(pending, request_id, why, sent, build),
    }
    pending.outgoing = this.#core.stack.request(pending.method, hop, build, events, patience_ms)
  }

  /** Sends the stored CANCEL. Without a final response within 64×T1 the INVITE ends (RFC 3261 §9.1). */
  sendCancel(pending: PendingClient, sent: SentRequest): void {
    pending.cancel = 'sent'
    const over = (): void => this.#endCancelled(pending)
    const { stack, patience_ms } = this.#core
    stack.cancel(sent, pending.cancel_text, { ...UNHEARD, timeout: over, unreachable: over })
    pending.deadline?.cancel()
    pending.deadline = stack.transactions.wheel.after(patience_ms, over)
  }

  /** Stores the ACK, to be sent again for each retransmission of the 2xx (RFC 3261 §13.2.2.4). */
  keepAck(pending: PendingClient, { text, destination }: SentRequest): void {
    const { transactions, transport } = this.#core.stack
    pending.ack = {
      text,
      tag: pending.answered_tag,
      resend: () => {
        transactions.counters.retransmissions_sent++
        transport.send(destination, text, true, () => undefined)
      },
    }
  }

  /** Removes a request that expects no further response. */
  finish(pending: PendingClient): void {
    pending.finished = true
    pending.deadline?.cancel()
    this.#core.clients.delete(pending.id)
  }

  #unreachable(
    pending: PendingClient,
    request_id: string,
    why: 'dns' | 'scheme' | 'transport' | 'network',
    sent: SentRequest | undefined,
    build: (listener: Listener) => Draft,
  ): void {
    if (sent) {
      this.#fabricated(pending, sent, 503, 'Service Unavailable')
      return
    }
    // Nothing was sent. The application still gets its reply first, with the request as it would have been sent.
    const listener =
      this.#core.stack.transport.listeners.find(l => l.protocol === 'udp') ?? this.#core.stack.transport.listeners[0]
    if (!listener) {
      this.finish(pending)
      pending.app.send(plainReply(request_id, 'NOK', 'requested protocol/transport not available'))
      return
    }
    const draft = build(listener)
    draft.headers.unshift({ rank: 0, id: 'via', name: 'Via', value: viaFor(listener, newBranch()) })
    const text = draft.serialize()
    const wire = { bytes: 0, protocol: 'unknown', host: '', port: 0, at: this.#core.clock.now() }
    pending.app.send(requestSentReply(request_id, wire, pending.id, text))
    this.#core.introduced(pending.hold)
    const [status, reason] =
      why === 'scheme' ? [416, 'Unsupported URI Scheme'] : [503, why === 'dns' ? 'DNS Error' : 'Service Unavailable']
    this.#deliverFabricated(pending, text, status as number, reason as string, 'unknown')
  }

  #fabricated(pending: PendingClient, sent: SentRequest, status: number, reason: string): void {
    if (pending.finished) return
    this.#deliverFabricated(pending, sent.text, status, reason, sent.destination.protocol)
  }

  #deliverFabricated(pending: PendingClient, request: string, status: number, reason: string, protocol: string): void {
    const text = this.#core.fabricate(request, status, reason)
    const wire = { bytes: 0, protocol, host: '', port: 0, at: this.#core.clock.now() }
    const { leg } = pending
    this.finish(pending)
    if (leg) {
      if (!pending.in_dialog || pending.method === 'BYE') {
        this.#core.dropLeg(leg)
      } else if (status === 408 && pending.method !== 'BYE' && leg.outgoing === pending) leg.outgoing = undefined
    }
    if (pending.app.open) {
      pending.app.sendHeld(dialogMessage(wire, pending.id, pending.dialog_id, text), pending.hold)
    }
  }

  #response(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): void {
    const { status } = response
    if (status < 200) this.#provisional(pending, response, from, sent)
    else if (pending.method === 'INVITE' && status < 300) this.#answered(pending, response, from, sent)
    else this.#final(pending, response, from, sent)
  }

  #provisional(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): void {
    if (!pending.provisional) {
      pending.provisional = true
      if (pending.method === 'INVITE') {
        const { wheel } = this.#core.stack.transactions
        pending.deadline = wheel.after(this.#core.settings.ringing_ms, () => this.#rangTooLong(pending, sent))
      }
      if (pending.cancel === 'held') this.sendCancel(pending, sent)
    }
    if (response.status === 100) return
    const rseq = response.lists('require', '100rel') ? response.get('rseq') : undefined
    if (rseq !== undefined) {
      // Ignore a retransmitted reliable response: its PRACK was sent or will be (RFC 3262 §4).
      const key = `${response.to_tag} ${rseq}`
      pending.rseqs ??= new Set()
      if (pending.rseqs.has(key) || pending.rseqs.size > 64) return
      pending.rseqs.add(key)
    }
    if (pending.method === 'INVITE' && response.to_tag !== '' && !pending.in_dialog) {
      const { dialog } = this.#legFor(pending, response, from, sent)
      if (rseq !== undefined) {
        pending.reliable ??= []
        const acknowledged = readRAck(`${rseq} ${response.get('cseq')}`)
        pending.reliable.push({ rseq: acknowledged?.rseq, dialog: dialog.copy() })
      }
    }
    this.#deliver(pending, response, from, sent)
  }

  // The first 2xx goes to the application, which acknowledges it. The edge handles later ones itself.
  #answered(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): void {
    if (pending.answered_tag !== '') {
      if (pending.answered_tag === response.to_tag) pending.ack?.resend()
      else this.#endFork(pending, response, from, sent)
      return
    }
    pending.answered_tag = response.to_tag === '' ? '-' : response.to_tag
    pending.deadline?.cancel()
    this.finish(pending)
    const leg = pending.in_dialog ? pending.leg : this.#legFor(pending, response, from, sent)
    if (!leg) return
    if (pending.in_dialog) leg.dialog.refreshTarget(response, from, false)
    else {
      leg.outgoing = pending
    }
    leg.state = 'confirmed'
    if (this.#core.legs.get(leg.id) !== leg) {
      // A BYE has crossed this answer, so no ACK of the application can follow (RFC 3261 §13.2.2.4). The answer to a
      // new INVITE may be that of another fork.
      this.#acknowledge(leg, pending, sent)
      if (!pending.in_dialog) requestInDialog(this.#core.stack, leg, 'BYE', draft => draft)
      this.#deliver(pending, response, from, sent)
      return
    }
    armAfterResponse(this.#core, leg, response, bodyOf(sent.text))
    if (!pending.app.open) {
      this.#acknowledge(leg, pending, sent)
      this.#core.hangUp(leg, 'application is gone')
      return
    }
    this.#deliver(pending, response, from, sent)
  }

  // Another fork answered the same INVITE (RFC 3261 §13.2.2.4). Acknowledges it and hangs up.
  #endFork(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): void {
    const key = `fork ${response.to_tag}`
    pending.rseqs ??= new Set()
    const known = pending.rseqs.has(key)
    const dialog = this.#dialogFrom(sent, response, from)
    this.#core.stack.request('ACK', dialog.nextHop(), () => ackOf(dialog, sent), UNHEARD)
    if (known || pending.rseqs.size > 64) return
    pending.rseqs.add(key)
    const authorizer = Authorizer.read(pending.credentials ?? '') ?? undefined
    requestInDialog(this.#core.stack, { dialog, authorizer }, 'BYE', draft => draft)
  }

  #acknowledge(leg: AgentLeg, pending: PendingClient, sent: SentRequest): void {
    this.#core.stack.request('ACK', leg.dialog.nextHop(), () => ackOf(leg.dialog, sent), {
      ...UNHEARD,
      sent: ack => this.keepAck(pending, ack),
    })
  }

  #final(pending: PendingClient, response: SipMessage, from: { host: string; port: number }, sent: SentRequest): void {
    const { status } = response
    const { leg } = pending
    pending.deadline?.cancel()
    this.finish(pending)
    const challenge = status === 401 || status === 407
    if (pending.method === 'INVITE') {
      if (pending.in_dialog) {
        if (leg?.outgoing === pending) leg.outgoing = undefined
      } else if (leg) this.#core.dropLeg(leg)
    } else if (pending.method === 'BYE') {
      // A challenged BYE is sent again with credentials, so the dialog stays.
      if (leg && challenge) leg.ending = false
      else if (leg) this.#core.dropLeg(leg)
    } else if (pending.method === 'SUBSCRIBE' && status < 300 && !pending.in_dialog) {
      const made = this.#legFor(pending, response, from, sent)
      made.state = 'confirmed'
      subscribed(this.#core, made, response.get('expires') ?? headerOf(sent.text, 'Expires'))
    } else if (leg?.kind === 'subscribe' && pending.method === 'SUBSCRIBE' && status < 300) {
      subscribed(this.#core, leg, response.get('expires') ?? headerOf(sent.text, 'Expires'))
    } else if (leg && pending.method === 'UPDATE' && status < 300) {
      if (leg.session) leg.sdp = bodyOf(sent.text) || leg.sdp
      leg.dialog.refreshTarget(response, from, false)
      armAfterUpdate(this.#core, leg, response)
    } else if (leg && pending.method === 'NOTIFY' && leg.kind === 'subscribe') {
      const state = headerOf(sent.text, 'Subscription-State') ?? ''
      if (state.toLowerCase().startsWith('terminated')) this.#core.dropLeg(leg)
    }
    // RFC 3261 §12.2.1.2: 481 and 408 end the dialog in which they were received.
    if (leg && pending.in_dialog && pending.method === 'INVITE' && (status === 481 || status === 408)) {
      this.#deliver(pending, response, from, sent)
      this.#core.hangUp(leg, 'Call does not exist')
      return
    }
    this.#deliver(pending, response, from, sent)
  }

  #deliver(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): void {
    if (!pending.app.open) return
    const wire = {
      bytes: response.bytes,
      protocol: sent.destination.protocol,
      host: from.host,
      port: from.port,
      at: this.#core.clock.now(),
    }
    pending.app.sendHeld(dialogMessage(wire, pending.id, pending.dialog_id, plainText(response)), pending.hold)
  }

  #legFor(
    pending: PendingClient,
    response: SipMessage,
    from: { host: string; port: number },
    sent: SentRequest,
  ): AgentLeg {
    const known = pending.leg
    if (known) {
      if (known.dialog.remote_tag !== response.to_tag && response.status < 200) {
        known.forks ??= new Set([known.dialog.remote_tag])
        if (known.forks.size < 64) known.forks.add(response.to_tag)
      } else if (response.status >= 200) known.forks = undefined
      // Forks share the leg. Its requests go to the latest early dialog, and finally to the one that answers.
      known.dialog.establish(response, from, this.#flow(sent))
      return known
    }
    const kind = pending.method === 'SUBSCRIBE' ? 'subscribe' : 'invite'
    const leg = new AgentLeg(pending.dialog_id, 'uac', kind, this.#dialogFrom(sent, response, from), pending.app)
    leg.ready_at = pending.hold.ready_at
    leg.authorize(pending.credentials)
    leg.outgoing = kind === 'invite' ? pending : undefined
    pending.leg = leg
    this.#core.legs.set(leg.id, leg)
    return leg
  }

  #dialogFrom(sent: SentRequest, response: SipMessage, from: { host: string; port: number }): SipDialog {
    const local = headerOf(sent.text, 'From') ?? ''
    const uri = sent.text.slice(sent.text.indexOf(' ') + 1, sent.text.indexOf(' SIP/2.0'))
    const dialog = SipDialog.asClient({
      call_id: response.call_id,
      local_tag: tagOf(local),
      local,
      remote: headerOf(sent.text, 'To') ?? '',
      seq: response.cseq.seq,
      contact: headerOf(sent.text, 'Contact') ?? contactFor(sent.listener, [uri]),
      uri,
    })
    dialog.establish(response, from, this.#flow(sent))
    return dialog
  }

  #flow(sent: SentRequest) {
    const { protocol, tls, server_name } = sent.destination
    const connection = this.#core.stack.transport.connectionFor(sent.destination)
    return { protocol, connection, tls, server_name }
  }

  #endCancelled(pending: PendingClient): void {
    if (pending.finished) return
    const sent = pending.outgoing?.sent
    pending.outgoing?.abandon()
    if (sent) this.#fabricated(pending, sent, 487, 'Request Terminated')
  }

  #rangTooLong(pending: PendingClient, sent: SentRequest): void {
    if (pending.finished || pending.cancel !== 'none') return
    pending.cancel_text = cancelFor(sent, undefined)
    this.sendCancel(pending, sent)
  }
}

// Returns a response as it came. One with bare line feeds is rebuilt.
function plainText(response: SipMessage): string {
  return response.regular ? response.raw : textFor(response)
}
