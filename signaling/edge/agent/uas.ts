import type { ControlClient } from '../control/client.ts'
import { type CommandMessage, commandHeader } from '../control/command.ts'
import { dialogMessage, newRequestMessage, plainReply, responseSentReply } from '../control/wire.ts'
import { Dialog, listenerAddress } from '../dialog/dialog.ts'
import { newSequence, newTag, newUuid } from '../sip/ids.ts'
import { Draft, draftResponse, type SipMessage, withTopVia } from '../sip/message.ts'
import { parseDigits, parseUri, tagOf } from '../sip/uri.ts'
import type { WheelTimer } from '../timers.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'
import { addBody, addContacts, addOwnHeaders } from './compose.ts'
import type { AgentCore } from './core.ts'
import type { AnsweredRequest } from './guard.ts'
import { dialogId, Leg, type PendingServer } from './leg.ts'
import { armAfterAnswer, refreshedByPeer, sessionTooSmall } from './session-timer.ts'

// Requests from the network, and the answers of applications to them (drachtio-control-protocol.md §9, §11, §12).

const KNOWN = new Set([
  'INVITE',
  'ACK',
  'CANCEL',
  'BYE',
  'OPTIONS',
  'REGISTER',
  'INFO',
  'MESSAGE',
  'SUBSCRIBE',
  'NOTIFY',
  'REFER',
  'PUBLISH',
  'UPDATE',
  'PRACK',
])
const ALLOW =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, INFO, MESSAGE, SUBSCRIBE, NOTIFY, REFER, PUBLISH, UPDATE, PRACK'

/** What takes new requests before the applications that registered for them: outbound connections, proxied dialogs. */
export interface NewRequestRoutes {
  /** True when it will bring the request to an application, or answer it, by itself. */
  readonly handler: (transaction: ServerTransaction) => boolean
  /** True when the request belongs to a proxied dialog and was relayed. */
  readonly relay: (message: SipMessage, received: Received, transaction: ServerTransaction | undefined) => boolean
  /** A CANCEL of an INVITE that is being proxied. */
  readonly cancel: (invite: ServerTransaction) => boolean
  /** False when its source has sent more requests without a dialog than a stranger may. */
  readonly admits: (host: string) => boolean
  /** Credentials came, or a final answer was sent, to a request outside dialogs: for the budget of strangers. */
  readonly identified: (host: string, call_id: string) => void
  readonly answered: (host: string, answer: AnsweredRequest) => void
  /** REGISTER or SUBSCRIBE was accepted: its contact is reached over the connection it came by. */
  readonly bind: (request: SipMessage, received: Received, response: Draft) => void
}

export class ServerSide {
  readonly #core: AgentCore
  readonly #routes: NewRequestRoutes
  readonly #byTransaction = new WeakMap<ServerTransaction, PendingServer>()

  constructor(core: AgentCore, routes: NewRequestRoutes) {
    this.#core = core
    this.#routes = routes
  }

  // -- From the network
  // -------------------------------------------------------------------------------------------------

  request(transaction: ServerTransaction): void {
    const { request, received } = transaction
    if (request.toTag !== '') {
      const leg = this.#core.legOf(request)
      if (leg) this.#inDialog(transaction, leg)
      else if (this.#routes.relay(request, received, transaction)) return
      else if (this.#routes.admits(received.source.host)) this.#unknownDialog(transaction)
      else transaction.terminate()
      return
    }
    if (!this.#routes.admits(received.source.host)) {
      transaction.terminate()
      return
    }
    if (request.method === 'INVITE') this.#trying(transaction)
    if (hasCredentials(request)) this.#routes.identified(received.source.host, request.callId)
    const refusal = this.#refusal(request)
    if (refusal) {
      this.refuse(transaction, refusal.status, undefined, refusal.headers)
      return
    }
    if (request.method === 'INVITE') this.#core.records.attempt('network', textFor(request))
    if (this.#routes.handler(transaction)) return
    this.offer(transaction, this.#core.apps.pick(request.method.toLowerCase()))
  }

  /** Gives a new request to an application; without one the peer gets 503 (or 405 for what nobody serves). */
  offer(transaction: ServerTransaction, app: ControlClient | undefined): void {
    const { request, received } = transaction
    if (!app) {
      if (UNREGISTERED_405.has(request.method)) this.refuse(transaction, 405, undefined, [['Allow', ALLOW]])
      else this.refuse(transaction, KNOWN.has(request.method) ? 503 : 501)
      return
    }
    const pending = this.#pend(transaction, app, undefined)
    const wire = this.#core.wireIn(request, received)
    app.send(newRequestMessage(wire, pending.id, received.listener, textFor(request)))
  }

  /** An ACK that belongs to no failure. */
  ack(message: SipMessage, received: Received): void {
    const leg = message.toTag === '' ? undefined : this.#core.legOf(message)
    if (!leg) {
      if (!this.#routes.relay(message, received, undefined)) this.#core.stack.transactions.counters.stray++
      return
    }
    const { answer } = leg
    // Repeated ACKs answer repetitions of our 2xx; the application has seen the first.
    if (answer?.seq !== message.cseq.seq) return
    answer.resend?.cancel()
    answer.deadline.cancel()
    answer.transaction.releaseAnswer()
    leg.answer = undefined
    if (!leg.app.open) return
    const wire = this.#core.wireIn(message, received)
    leg.app.sendHeld(dialogMessage(wire, answer.transaction_id, leg.id, textFor(message)), leg)
  }

  cancel(cancel: ServerTransaction, invite: ServerTransaction | undefined): void {
    if (invite && this.#routes.cancel(invite)) {
      this.refuse(cancel, 200)
      return
    }
    if (!invite && !this.#routes.admits(cancel.received.source.host)) {
      cancel.terminate()
      return
    }
    if (!invite || invite.answered) {
      this.refuse(cancel, 481)
      const leg = cancel.request.toTag === '' ? undefined : this.#core.legOf(cancel.request)
      // A peer that cancels an answered call with the dialog's own tags wants it to end.
      if (leg) this.#core.hangUp(leg, 'CANCEL after 200 OK', 'system-initiated-termination')
      return
    }
    const pending = this.#pendingOf(invite)
    const tag = pending ? this.#toTag(pending) : newTag()
    cancel.respond(draftResponse(cancel.request, 200, tag), 200)
    invite.respond(draftResponse(invite.request, 487, tag), 487)
    if (!pending) return
    this.#finish(pending)
    // An open re-INVITE ends between us and the peer, and the dialog goes on.
    if (pending.leg) {
      pending.leg.incoming = undefined
      return
    }
    const dialog_id = pending.early ? pending.early.id : ''
    this.#core.records.stop(pending.early ?? { cdr: undefined }, 'network', 'call-canceled', textFor(invite.request))
    if (pending.early) this.#core.dropLeg(pending.early)
    if (!pending.app.open) return
    const wire = { ...this.#core.wireIn(cancel.request, cancel.received), protocol: cancel.received.protocol }
    pending.app.sendHeld(
      dialogMessage(wire, pending.id, dialog_id, textFor(cancel.request)),
      pending.early ?? pending.hold,
    )
  }

  /** Answers a request on our own account. */
  refuse(
    transaction: ServerTransaction,
    status: number,
    reason?: string,
    headers: readonly (readonly [string, string])[] = [],
  ): void {
    const draft = draftResponse(transaction.request, status, newTag(), reason)
    for (const [name, value] of headers) draft.add(name, value)
    transaction.respond(draft, status)
  }

  // -- From the application
  // ---------------------------------------------------------------------------------------------

  /** A command `sip|<transaction>|` with a response. */
  respond(app: ControlClient, request_id: string, transaction_id: string, command: CommandMessage): void {
    const pending = this.#core.servers.get(transaction_id)
    const method = commandHeader(command, 'cseq')?.split(' ').pop()
    if (pending?.update && method === 'UPDATE') {
      this.#respondUpdate(app, request_id, pending, pending.update, command)
      return
    }
    if (!pending || pending.transaction.answered) {
      app.send(plainReply(request_id, 'NOK', 'Response not sent due to unknown transaction'))
      return
    }
    const { transaction } = pending
    if (!transaction.reachable) {
      this.#finish(pending)
      if (pending.early) this.#core.dropLeg(pending.early)
      app.send(plainReply(request_id, 'NOK', 'transport for response has been shutdown or closed'))
      return
    }
    const { request, received } = transaction
    const { status } = command
    const reliable = request.method === 'INVITE' && status > 100 && status < 200 && requires(command, '100rel')
    if (reliable && !request.lists('supported', '100rel') && !request.lists('require', '100rel')) {
      app.send(plainReply(request_id, 'NOK', 'Remote endpoint does not support 100rel'))
      return
    }
    this.#chooseTag(pending, command)
    const draft = draftResponse(request, status, this.#toTag(pending), command.reason)
    const invites = request.method === 'INVITE' || request.method === 'SUBSCRIBE'
    if (invites && status > 100 && status < 300) {
      for (const value of request.lines('record-route')) draft.add('Record-Route', value)
    }
    const leg = this.#legForAnswer(pending, status)
    const success = status >= 200 && status < 300
    // RFC 3261 §12.1.1: whatever makes a dialog says where its requests go, an early one too.
    const own_contact =
      (success && invites) || (leg && status < 200) || (success && request.method === 'UPDATE' && pending.leg)
        ? listenerAddress(received.listener)
        : undefined
    addOwnHeaders(draft, command, 'response', received.listener)
    const contact = addContacts(draft, command, received.listener, own_contact)
    addBody(draft, command)
    if (leg && contact !== '' && success && !pending.leg) leg.dialog.contact = contact
    if (success && leg && request.method === 'INVITE') armAfterAnswer(this.#core, leg, request, draft)
    if (success) this.#routes.bind(request, received, draft)
    const text = reliable ? this.#sendReliable(pending, draft, status) : (transaction.respond(draft, status) ?? '')
    const wire = {
      bytes: text.length,
      protocol: received.protocol,
      host: received.source.host,
      port: received.source.port,
      at: this.#core.clock.now(),
    }
    const shown_id = this.#shownDialogId(pending, leg, status)
    this.#core.introduced(leg ?? pending.hold)
    app.send(responseSentReply(request_id, wire, pending.id, shown_id, text))
    this.#afterAnswer(pending, leg, status, draft, text)
  }

  #respondUpdate(
    app: ControlClient,
    request_id: string,
    pending: PendingServer,
    update: ServerTransaction,
    command: CommandMessage,
  ): void {
    const { request, received } = update
    const leg = pending.early
    const draft = draftResponse(request, command.status, '', command.reason)
    addOwnHeaders(draft, command, 'response', received.listener)
    const success = command.status >= 200 && command.status < 300
    addContacts(draft, command, received.listener, success ? leg?.dialog.contact : undefined)
    addBody(draft, command)
    const text = update.respond(draft, command.status) ?? ''
    if (command.status >= 200) pending.update = undefined
    if (success) leg?.dialog.refreshTarget(request, received.source, received.protocol === 'udp')
    const wire = {
      bytes: text.length,
      protocol: received.protocol,
      host: received.source.host,
      port: received.source.port,
      at: this.#core.clock.now(),
    }
    app.send(responseSentReply(request_id, wire, pending.id, leg?.id ?? '', text))
  }

  // The application may choose the To tag with its first response to an INVITE.
  #chooseTag(pending: PendingServer, command: CommandMessage): void {
    if (pending.to_tag !== '' || command.status === 100) return
    const to = commandHeader(command, 'to')
    pending.to_tag = (to === undefined ? '' : tagOf(to)) || newTag()
  }

  #toTag(pending: PendingServer): string {
    if (pending.to_tag === '') pending.to_tag = newTag()
    return pending.to_tag
  }

  // An early leg comes to life with the first 1xx above 100, a confirmed one with the 2xx.
  #legForAnswer(pending: PendingServer, status: number): Leg | undefined {
    if (pending.leg) return pending.leg
    if (pending.early) return pending.early
    const { request, received } = pending.transaction
    const forms =
      (request.method === 'INVITE' && status > 100 && status < 300) ||
      (request.method === 'SUBSCRIBE' && status >= 200 && status < 300)
    if (!forms) return undefined
    const id = dialogId(request.callId, request.fromTag)
    const dialog = Dialog.asServer(request, received, this.#toTag(pending))
    const leg = new Leg(id, 'uas', request.method === 'INVITE' ? 'invite' : 'subscribe', dialog, pending.app)
    leg.incoming = request.method === 'INVITE' ? pending : undefined
    pending.early = leg
    this.#core.legs.set(id, leg)
    return leg
  }

  #shownDialogId(pending: PendingServer, leg: Leg | undefined, status: number): string {
    const { request } = pending.transaction
    if (pending.leg) return this.#core.legs.get(pending.leg.id) === pending.leg ? pending.leg.id : ''
    if (leg) return leg.id
    return request.method === 'INVITE' && status > 100 ? dialogId(request.callId, request.fromTag) : ''
  }

  #afterAnswer(pending: PendingServer, leg: Leg | undefined, status: number, draft: Draft, text: string): void {
    const { request, received } = pending.transaction
    if (status < 200) {
      if (status > 100 && request.method === 'INVITE') this.#allowRinging(pending)
      return
    }
    this.#finish(pending)
    const success = status < 300
    if (request.method === 'INVITE') {
      if (leg) leg.incoming = undefined
      if (success && leg) this.#confirm(pending, leg, draft, text)
      else if (pending.early) {
        this.#core.records.stop(pending.early, 'application', 'call-rejected', text)
        this.#core.dropLeg(pending.early)
      } else if (!pending.leg) this.#core.records.stop({ cdr: undefined }, 'application', 'call-rejected', text)
    } else if (success && leg && request.method === 'UPDATE') {
      leg.dialog.refreshTarget(request, received.source, received.protocol === 'udp')
    } else if (leg && endsSubscription(request) && leg.kind === 'subscribe') this.#core.dropLeg(leg)
    else if (success && leg?.kind === 'subscribe' && request.method === 'SUBSCRIBE') {
      leg.state = 'confirmed'
      subscribed(this.#core, leg, draft.get('expires') ?? request.get('expires'))
    }
    if (request.toTag !== '') return
    this.#routes.answered(received.source.host, {
      method: request.method,
      status,
      call_id: request.callId,
      credentials: hasCredentials(request),
      stale: /\bstale\s*=\s*"?true/i.test(draft.get('www-authenticate') ?? draft.get('proxy-authenticate') ?? ''),
    })
  }

  #confirm(pending: PendingServer, leg: Leg, draft: Draft, text: string): void {
    const { transaction } = pending
    if (pending.leg) {
      leg.dialog.refreshTarget(
        transaction.request,
        transaction.received.source,
        transaction.received.protocol === 'udp',
      )
    } else {
      this.#core.records.start(leg, 'application', 'uas', text)
    }
    leg.state = 'confirmed'
    if (leg.session) leg.sdp = draft.body
    const { wheel, scale } = this.#core.stack.transactions
    leg.answer?.resend?.cancel()
    leg.answer?.deadline.cancel()
    const answer = {
      transaction,
      transaction_id: pending.leg ? newUuid() : pending.id,
      seq: transaction.request.cseq.seq,
      resend: undefined as WheelTimer | undefined,
      deadline: wheel.after(this.#core.patience_ms, () => {
        leg.answer = undefined
        answer.resend?.cancel()
        this.#core.hangUp(leg, 'ACK timeout', 'system-initiated-termination')
      }),
    }
    leg.answer = answer
    // RFC 3261 §13.3.1.4: over connections too, for a proxy behind them may have lost it.
    const again = (delay_ms: number, due_ms: number): void => {
      answer.resend = wheel.at(due_ms, () => {
        transaction.repeat(text)
        const next = Math.min(delay_ms * 2, scale.t2)
        again(next, due_ms + next)
      })
    }
    again(scale.t1, this.#core.clock.monotonic_ms() + scale.t1)
  }

  // A call that rings may ring for long, but not for ever.
  #allowRinging(pending: PendingServer): void {
    pending.deadline?.cancel()
    pending.deadline = this.#core.stack.transactions.wheel.after(this.#core.settings.ringing_ms, () => {
      this.#abandon(pending, 480)
    })
  }

  // -- Reliable provisional responses (RFC 3262)
  // -------------------------------------------------------------------------

  #sendReliable(pending: PendingServer, draft: Draft, status: number): string {
    const { wheel, scale } = this.#core.stack.transactions
    pending.last_rseq = pending.last_rseq === 0 ? newSequence() : pending.last_rseq + 1
    draft.set('RSeq', String(pending.last_rseq))
    const text = pending.transaction.respond(draft, status) ?? ''
    this.#stopReliable(pending)
    const reliable = {
      rseq: pending.last_rseq,
      text,
      timer: undefined as PendingServer['deadline'],
      // RFC 3262 §3: without PRACK in 64×T1 the INVITE is refused.
      deadline: wheel.after(this.#core.patience_ms, () => this.#abandon(pending, 504)),
    }
    pending.reliable = reliable
    const again = (delay_ms: number): void => {
      reliable.timer = wheel.after(delay_ms, () => {
        if (pending.transaction.answered) return
        pending.transaction.repeat(text)
        again(delay_ms * 2)
      })
    }
    again(scale.t1)
    return text
  }

  #stopReliable(pending: PendingServer): void {
    pending.reliable?.timer?.cancel()
    pending.reliable?.deadline.cancel()
    pending.reliable = undefined
  }

  // -- Requests inside dialogs
  // -------------------------------------------------------------------------------------------

  #inDialog(transaction: ServerTransaction, leg: Leg): void {
    const { request, received } = transaction
    const { method } = request
    const other_fork = leg.forks !== undefined && leg.dialog.remoteTag !== request.fromTag
    if (!other_fork && request.cseq.seq < leg.dialog.remoteSeq) {
      // RFC 3261 §12.2.2
      this.refuse(transaction, 500, undefined, method === 'INVITE' ? [['Retry-After', '1']] : [])
      return
    }
    if (!other_fork) leg.dialog.remoteSeq = request.cseq.seq
    if (leg.dialog.remoteTag === '') leg.dialog.remoteTag = request.fromTag
    if (method === 'INVITE') this.#trying(transaction)
    if (!leg.app.open) {
      this.refuse(transaction, 481)
      if (method === 'BYE') this.#core.dropLeg(leg)
      return
    }
    if (method === 'BYE') {
      this.#bye(transaction, leg)
      return
    }
    if (method === 'PRACK' && leg.incoming && !this.#prackFits(leg.incoming, request)) {
      this.refuse(transaction, 481)
      return
    }
    if (method === 'PRACK' && !leg.incoming) {
      this.refuse(transaction, 481)
      return
    }
    if ((method === 'INVITE' || method === 'UPDATE') && sessionTooSmall(request)) {
      this.refuse(transaction, 422, undefined, [['Min-SE', '90']])
      return
    }
    if (method === 'INVITE' && !this.#mayReinvite(transaction, leg)) return
    if (method === 'INVITE' || method === 'UPDATE') refreshedByPeer(this.#core, leg)
    // Contact moves with the packet's source: a NAT may have given the peer another binding.
    if (leg.dialog.connection && received.connection) leg.dialog.connection = received.connection
    const wire = this.#core.wireIn(request, received)
    if (method === 'UPDATE' && leg.incoming && leg.role === 'uas' && leg.state === 'early') {
      if (leg.incoming.update) {
        this.refuse(transaction, 500, undefined, [['Retry-After', '1']])
        return
      }
      leg.incoming.update = transaction
      leg.app.sendHeld(dialogMessage(wire, leg.incoming.id, leg.id, textFor(request)), leg)
      return
    }
    const pending = this.#pend(transaction, leg.app, leg)
    if (method === 'INVITE') leg.incoming = pending
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }

  // RFC 3261 §14.2: one INVITE at a time, and none across ours.
  #mayReinvite(transaction: ServerTransaction, leg: Leg): boolean {
    if (leg.incoming) {
      this.refuse(transaction, 500, undefined, [['Retry-After', '1']])
      return false
    }
    if (leg.outgoing && !leg.outgoing.finished) {
      this.refuse(transaction, 491)
      return false
    }
    return true
  }

  #prackFits(invite: PendingServer, prack: SipMessage): boolean {
    const [rseq, cseq, method] = (prack.get('rack') ?? '').split(/\s+/, 3)
    if (method !== 'INVITE' || !invite.reliable) return false
    if (parseDigits(cseq ?? '', 2 ** 31) !== invite.transaction.request.cseq.seq) return false
    if (parseDigits(rseq ?? '', 2 ** 32) !== invite.reliable.rseq) return false
    this.#stopReliable(invite)
    return true
  }

  #bye(transaction: ServerTransaction, leg: Leg): void {
    const { request, received } = transaction
    const wire = this.#core.wireIn(request, received)
    const invite = leg.incoming
    if (invite && leg.state === 'early') {
      // The caller gives up with BYE instead of CANCEL (RFC 3261 §15.1.2): for the application it is a CANCEL.
      this.refuse(transaction, 200)
      invite.transaction.respond(draftResponse(invite.transaction.request, 487, this.#toTag(invite)), 487)
      this.#finish(invite)
      this.#core.records.stop(leg, 'network', 'call-canceled', textFor(invite.transaction.request))
      this.#core.dropLeg(leg)
      leg.app.sendHeld(dialogMessage(wire, invite.id, leg.id, cancelText(invite.transaction.request)), leg)
      return
    }
    if (invite) {
      // RFC 3261 §15.1.2: requests that are still open end with 487.
      invite.transaction.respond(draftResponse(invite.transaction.request, 487, ''), 487)
      this.#finish(invite)
      leg.incoming = undefined
    }
    const pending = this.#pend(transaction, leg.app, leg)
    this.#core.records.stop(leg, 'network', 'normal-release', textFor(request))
    this.#core.dropLeg(leg)
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }

  #unknownDialog(transaction: ServerTransaction): void {
    const { method } = transaction.request
    if (method === 'INVITE') this.#trying(transaction)
    // An application may know dialogs that we do not, for example after a restart; the reference offers these to it.
    if (method === 'INVITE' || method === 'BYE' || method === 'UPDATE' || method === 'PRACK' || !KNOWN.has(method)) {
      this.refuse(transaction, 481)
      return
    }
    const app = this.#core.apps.pick(method.toLowerCase())
    if (app) this.offer(transaction, app)
    else this.refuse(transaction, 481)
  }

  // -- Requests outside dialogs
  // ------------------------------------------------------------------------------------------

  #refusal(request: SipMessage): { status: number; headers: readonly (readonly [string, string])[] } | undefined {
    const { method } = request
    const uri = parseUri(request.uri)
    if (!uri) return { status: 400, headers: [] }
    if (uri.scheme !== 'sip' && uri.scheme !== 'sips' && uri.scheme !== 'tel') return { status: 416, headers: [] }
    if (method === 'BYE' || method === 'UPDATE' || method === 'PRACK') return { status: 481, headers: [] }
    if (method === 'REGISTER' && request.lines('contact').includes('*') && request.get('expires') !== '0') {
      return { status: 400, headers: [] }
    }
    if (method === 'INVITE' && this.#core.legs.has(dialogId(request.callId, request.fromTag))) {
      // Another INVITE without a To tag for a call that is up: none of ours to merge (RFC 3261 §8.2.2.2).
      return { status: 491, headers: [] }
    }
    // Only a call is carried on by what stands behind us; other requests end here whatever hops they have left.
    if (method === 'INVITE' && request.maxForwards === 0) return { status: 483, headers: [] }
    const unsupported = request.list('require').filter(tag => !this.#core.settings.supported.has(tag.toLowerCase()))
    if (unsupported.length > 0) return { status: 420, headers: [['Unsupported', unsupported.join(', ')]] }
    return undefined
  }

  #trying(transaction: ServerTransaction): void {
    transaction.respond(draftResponse(transaction.request, 100, ''), 100)
  }

  #pend(transaction: ServerTransaction, app: ControlClient, leg: Leg | undefined): PendingServer {
    const { wheel } = this.#core.stack.transactions
    const pending: PendingServer = {
      id: newUuid(),
      transaction,
      app,
      leg,
      to_tag: transaction.request.toTag,
      early: undefined,
      deadline: undefined,
      update: undefined,
      reliable: undefined,
      last_rseq: 0,
      hold: this.#core.newHold(),
    }
    // An application that never answers: an INVITE is given up after 64 s, anything else when the peer has given up.
    const invite = transaction.method === 'INVITE'
    pending.deadline = wheel.after(this.#core.patience_ms * (invite ? 2 : 1), () => {
      this.#abandon(pending, invite ? 503 : 500)
    })
    this.#core.servers.set(pending.id, pending)
    this.#byTransaction.set(transaction, pending)
    return pending
  }

  /** Ends a request that its application does not answer. */
  #abandon(pending: PendingServer, status: number): void {
    this.#finish(pending)
    if (pending.leg?.incoming === pending) pending.leg.incoming = undefined
    if (pending.early) this.#core.dropLeg(pending.early)
    const reason = status === 500 ? 'Internal Server Error' : undefined
    const draft = draftResponse(pending.transaction.request, status, this.#toTag(pending), reason)
    pending.transaction.respond(draft, status)
  }

  /** The application of a pending request is gone. */
  orphaned(pending: PendingServer): void {
    this.#abandon(pending, pending.transaction.method === 'INVITE' ? 503 : 481)
  }

  #finish(pending: PendingServer): void {
    if (pending.update) {
      // The INVITE ended first; an UPDATE in it can no longer be answered by its transaction id.
      pending.update.respond(draftResponse(pending.update.request, 500, ''), 500)
      pending.update = undefined
    }
    pending.deadline?.cancel()
    this.#stopReliable(pending)
    this.#core.servers.delete(pending.id)
    this.#byTransaction.delete(pending.transaction)
  }

  // A request that was handed to a proxy is pending no more.
  #pendingOf(transaction: ServerTransaction): PendingServer | undefined {
    const pending = this.#byTransaction.get(transaction)
    return pending && this.#core.servers.has(pending.id) ? pending : undefined
  }
}

const UNREGISTERED_405 = new Set(['REFER'])

function hasCredentials(request: SipMessage): boolean {
  return request.has('authorization') || request.has('proxy-authorization')
}

/** The message as the application gets it: as it came, with the packet's source in the topmost Via. */
export function textFor(message: SipMessage): string {
  return withTopVia(message, message.get('via') ?? '')
}

function requires(command: CommandMessage, tag: string): boolean {
  return command.headers.some(
    h =>
      h.id === 'require' &&
      h.value
        .toLowerCase()
        .split(/\s*,\s*/)
        .includes(tag),
  )
}

/** A subscription without a refresh ends by itself, some time after it has expired (RFC 6665 §4.1.2.4). */
export function subscribed(core: AgentCore, leg: Leg, expires: string | undefined): void {
  const { wheel } = core.stack.transactions
  leg.expiry?.cancel()
  const seconds = parseDigits(expires ?? '3600', 2 ** 31) ?? 3_600
  leg.expiry = wheel.after(seconds * 1000 + core.patience_ms, () => core.dropLeg(leg))
}

function endsSubscription(request: SipMessage): boolean {
  return request.method === 'NOTIFY' && (request.get('subscription-state') ?? '').toLowerCase().startsWith('terminated')
}

function cancelText(invite: SipMessage): string {
  const draft = Draft.request('CANCEL', invite.uri)
  for (const id of ['via', 'from', 'to', 'call-id'] as const) draft.add(id, invite.get(id) ?? '')
  return draft.add('CSeq', `${invite.cseq.seq} CANCEL`).add('Max-Forwards', '70').serialize()
}
