import { hasToken, parseCSeq } from '../../../core/domain/sip/values.ts'
import type { ControlClient } from '../control/client.ts'
import { type CommandMessage, commandHeader } from '../control/command.ts'
import { plainReply, responseSentReply } from '../control/wire.ts'
import { contactForAnswer, SipDialog } from '../dialog/dialog.ts'
import { newTag, newUuid } from '../sip/ids.ts'
import { type Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import { tagOf } from '../sip/uri.ts'
import type { WheelTimer } from '../timers.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'
import { addBody, addContacts, addOwnHeaders } from './compose.ts'
import type { AgentCore } from './core.ts'
import { AgentLeg, dialogId, type PendingServer } from './leg.ts'
import type { PendingRequests } from './pending.ts'
import { armAfterAnswer } from './session-timer.ts'
import { endsSubscription, subscribed } from './subscription.ts'
import { type DialogRequests, refusesStranger } from './within-dialog.ts'

// Answers of applications to requests from the network (drachtio-control-protocol.md §9, §11).

/** Callbacks for answers that were sent to peers. */
export interface AnswerWatch {
  /** A final answer was sent to an out-of-dialog request. The guard counts strangers' failures by it. */
  readonly answered: (request: SipMessage, received: Received, status: number, response: Draft) => void
  /** A request was accepted. The contact of a REGISTER or SUBSCRIBE is then reached over the request's connection. */
  readonly bind: (request: SipMessage, received: Received, response: Draft) => void
}

export class Answers {
  readonly #core: AgentCore
  readonly #pending: PendingRequests
  readonly #dialogs: DialogRequests
  readonly #watch: AnswerWatch

  constructor(core: AgentCore, pending: PendingRequests, dialogs: DialogRequests, watch: AnswerWatch) {
    this.#core = core
    this.#pending = pending
    this.#dialogs = dialogs
    this.#watch = watch
  }

  /** Handles a command `sip|<transaction>|` with a response. */
  respond(app: ControlClient, request_id: string, transaction_id: string, command: CommandMessage): void {
    const pending = this.#core.servers.get(transaction_id)
    const method = parseCSeq(commandHeader(command, 'cseq'))?.method
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
      this.#pending.finish(pending)
      if (pending.early) this.#core.dropLeg(pending.early)
      if (pending.leg) this.#unheard(pending, pending.leg, command.status)
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
    const draft = draftResponse(request, status, this.#pending.toTag(pending), command.reason)
    const invites = request.method === 'INVITE' || request.method === 'SUBSCRIBE'
    if (invites && status > 100 && status < 300) {
      for (const value of request.lines('record-route')) draft.add('Record-Route', value)
    }
    const leg = this.#legForAnswer(pending, status)
    leg?.authorize(command.credentials)
    const success = status >= 200 && status < 300
    // RFC 3261 §12.1.1: each response that creates a dialog, even an early one, needs a Contact.
    const own_contact =
      (success && invites) || (leg && status < 200) || (success && request.method === 'UPDATE' && pending.leg)
        ? contactInAnswer(pending, received, request)
        : undefined
    addOwnHeaders(draft, command, 'response', received.listener)
    const contact = addContacts(draft, command, received.listener, own_contact)
    addBody(draft, command)
    if (leg && contact !== '' && success && !pending.leg) leg.dialog.contact = contact
    if (success && leg && setsTimer(request, leg)) armAfterAnswer(this.#core, leg, request, draft)
    if (success) this.#watch.bind(request, received, draft)
    const text = reliable
      ? this.#pending.sendReliable(pending, draft, status)
      : (transaction.respond(draft, status) ?? '')
    const wire = this.#core.wireBack(received, text)
    const shown_id = this.#shownDialogId(pending, leg, status)
    this.#core.introduced(leg ?? pending.hold)
    app.send(responseSentReply(request_id, wire, pending.id, shown_id, text))
    this.#afterAnswer(pending, leg, status, draft, text)
  }

  /** The peer of a dialog can't get the answer, which holds all the same: a BYE ends the dialog. */
  #unheard(pending: PendingServer, leg: AgentLeg, status: number): void {
    if (leg.incoming === pending) leg.incoming = undefined
    if (status >= 200) this.#dialogs.judged(pending.transaction, leg, status)
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
    if (command.status >= 200) {
      this.#pending.updateAnswered(pending)
      if (leg) this.#dialogs.judged(update, leg, command.status)
    }
    if (success) leg?.dialog.refreshTarget(request, received.source, received.protocol === 'udp')
    const wire = this.#core.wireBack(received, text)
    app.send(responseSentReply(request_id, wire, pending.id, leg?.id ?? '', text))
  }

  // The application may choose the To tag with its first response to an INVITE.
  #chooseTag(pending: PendingServer, command: CommandMessage): void {
    if (pending.to_tag !== '' || command.status === 100) return
    const to = commandHeader(command, 'to')
    pending.to_tag = (to === undefined ? '' : tagOf(to)) || newTag(this.#core.stack.mark)
  }

  // The first 1xx above 100 creates an early leg. A 2xx creates a leg if there was none.
  #legForAnswer(pending: PendingServer, status: number): AgentLeg | undefined {
    if (pending.leg) return pending.leg
    if (pending.early) return pending.early
    const { request, received } = pending.transaction
    const forms =
      (request.method === 'INVITE' && status > 100 && status < 300) ||
      (request.method === 'SUBSCRIBE' && status >= 200 && status < 300)
    if (!forms) return undefined
    const id = dialogId(request.call_id, request.from_tag)
    const dialog = SipDialog.asServer(request, received, this.#pending.toTag(pending))
    const leg = new AgentLeg(id, 'uas', request.method === 'INVITE' ? 'invite' : 'subscribe', dialog, pending.app)
    leg.incoming = request.method === 'INVITE' ? pending : undefined
    pending.early = leg
    this.#core.legs.set(id, leg)
    return leg
  }

  #shownDialogId(pending: PendingServer, leg: AgentLeg | undefined, status: number): string {
    const { request } = pending.transaction
    if (pending.leg) return this.#goesOn(pending, pending.leg, status) ? pending.leg.id : ''
    if (leg) return leg.id
    return request.method === 'INVITE' && status > 100 ? dialogId(request.call_id, request.from_tag) : ''
  }

  /** Reports whether the leg of an answered request is still there after the answer. */
  #goesOn({ transaction }: PendingServer, leg: AgentLeg, status: number): boolean {
    if (transaction.method === 'BYE' && status >= 200 && !refusesStranger(status)) return false
    return this.#core.legs.get(leg.id) === leg
  }

  #afterAnswer(pending: PendingServer, leg: AgentLeg | undefined, status: number, draft: Draft, text: string): void {
    const { request, received } = pending.transaction
    if (status < 200) {
      if (status > 100 && request.method === 'INVITE') this.#allowRinging(pending)
      return
    }
    const success = status < 300
    const { rseq } = pending.reliable ?? {}
    if (success && leg && rseq !== undefined) leg.overtaken = { seq: request.cseq.seq, rseq }
    this.#pending.finish(pending)
    if (pending.leg) this.#dialogs.judged(pending.transaction, pending.leg, status)
    if (request.method === 'INVITE') {
      if (leg) leg.incoming = undefined
      if (success && leg) this.#confirm(pending, leg, draft, text)
      else if (pending.early) this.#core.dropLeg(pending.early)
    } else if (success && leg && request.method === 'UPDATE') {
      if (leg.session && draft.body !== '') leg.sdp = draft.body
      leg.dialog.refreshTarget(request, received.source, received.protocol === 'udp')
    } else if (leg && endsSubscription(request) && leg.kind === 'subscribe') this.#core.dropLeg(leg)
    else if (success && leg?.kind === 'subscribe' && request.method === 'SUBSCRIBE') {
      leg.state = 'confirmed'
      subscribed(this.#core, leg, draft.get('expires') ?? request.get('expires'))
    }
    if (request.to_tag !== '') return
    this.#watch.answered(request, received, status, draft)
  }

  #confirm(pending: PendingServer, leg: AgentLeg, draft: Draft, text: string): void {
    const { transaction } = pending
    if (pending.leg) {
      leg.dialog.refreshTarget(
        transaction.request,
        transaction.received.source,
        transaction.received.protocol === 'udp',
      )
    }
    leg.state = 'confirmed'
    if (leg.session) leg.sdp = draft.body
    const { wheel, scale } = this.#core.stack.transactions
    leg.stopAnswering()
    const answer = {
      transaction,
      transaction_id: pending.leg ? newUuid() : pending.id,
      seq: transaction.request.cseq.seq,
      acknowledged_elsewhere: false,
      resend: undefined as WheelTimer | undefined,
      deadline: wheel.after(this.#core.patience_ms, () => {
        leg.stopAnswering()
        if (!answer.acknowledged_elsewhere) this.#core.hangUp(leg, 'ACK timeout')
      }),
    }
    leg.answer = answer
    // RFC 3261 §13.3.1.4: retransmit over connections too, because a proxy behind one may have lost the response.
    const again = (delay_ms: number, due_ms: number): void => {
      answer.resend = wheel.at(due_ms, () => {
        transaction.repeat(text)
        const next = Math.min(delay_ms * 2, scale.t2)
        again(next, due_ms + next)
      })
    }
    again(scale.t1, this.#core.clock.monotonic_ms() + scale.t1)
  }

  // Bounds how long a call may ring.
  #allowRinging(pending: PendingServer): void {
    pending.deadline?.cancel()
    pending.deadline = this.#core.stack.transactions.wheel.after(this.#core.settings.ringing_ms, () => {
      this.#pending.abandon(pending, 480)
    })
  }
}

function requires(command: CommandMessage, tag: string): boolean {
  return command.headers.some(h => h.id === 'require' && hasToken(h.value, tag))
}

/** Before the answer to the INVITE there is no session to refresh. */
const setsTimer = ({ method }: SipMessage, leg: AgentLeg): boolean =>
  method === 'INVITE' || (method === 'UPDATE' && leg.state === 'confirmed')

/** A request that came by another machine's edge does not change where the peer reaches us. */
const contactInAnswer = (pending: PendingServer, received: Received, request: SipMessage): string =>
  received.connection?.lent && pending.leg ? pending.leg.dialog.contact : contactForAnswer(received.listener, request)
