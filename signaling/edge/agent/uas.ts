import { readSeconds } from '../../../core/domain/sip/values.ts'
import type { ControlClient } from '../control/client.ts'
import type { CommandMessage } from '../control/command.ts'
import { dialogMessage, newRequestMessage } from '../control/wire.ts'
import { METHODS } from '../sip/headers.ts'
import { newTag } from '../sip/ids.ts'
import { draftResponse, type SipMessage } from '../sip/message.ts'
import { parseUri } from '../sip/uri.ts'
import { RETRY_AFTER_SECONDS } from '../transaction/layer.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'
import { Answers, type AnswerWatch } from './answers.ts'
import type { AgentCore } from './core.ts'
import { type AgentLeg, dialogId, type PendingServer } from './leg.ts'
import { answerAlone, PendingRequests, textFor, trying } from './pending.ts'
import { DialogRequests } from './within-dialog.ts'

// Requests from the network (drachtio-control-protocol.md §9, §12). The edge answers some itself and offers the others
// to applications.

const KNOWN: ReadonlySet<string> = new Set(METHODS)
const ALLOW = METHODS.join(', ')

/** Limits new requests from the network, and learns how they were answered. */
interface RequestWatch extends AnswerWatch {
  /** Returns false when the source has exceeded a stranger's limit of out-of-dialog requests. */
  readonly admits: (received: Received) => boolean
}

export class ServerSide {
  readonly #core: AgentCore
  readonly #watch: RequestWatch
  readonly #pending: PendingRequests
  readonly #answers: Answers
  readonly #dialogs: DialogRequests

  constructor(core: AgentCore, watch: RequestWatch) {
    this.#core = core
    this.#watch = watch
    this.#pending = new PendingRequests(core)
    this.#dialogs = new DialogRequests(core, this.#pending)
    this.#answers = new Answers(core, this.#pending, this.#dialogs, watch)
  }

  request(transaction: ServerTransaction): void {
    const { request, received } = transaction
    if (request.to_tag !== '') {
      const leg = this.#core.legOf(request)
      if (leg) this.#dialogs.request(transaction, leg)
      else if (this.#watch.admits(received)) this.#unknownDialog(transaction)
      else transaction.terminate()
      return
    }
    if (!this.#watch.admits(received)) {
      transaction.terminate()
      return
    }
    if (request.method === 'INVITE' && transaction.proven) trying(transaction)
    const refusal = this.#refusal(request)
    if (refusal) {
      answerAlone(transaction, refusal.status, undefined, refusal.headers)
      return
    }
    this.#offer(transaction, this.#core.apps.pick(request.method.toLowerCase()))
  }

  /**
   * Offers a new request to an application. Without one the peer gets 503, 405 for REFER, or 501 for unknown methods.
   */
  #offer(transaction: ServerTransaction, app: ControlClient | undefined): void {
    const { request, received } = transaction
    if (!app) {
      if (UNREGISTERED_405.has(request.method)) answerAlone(transaction, 405, undefined, [['Allow', ALLOW]])
      else if (KNOWN.has(request.method))
        answerAlone(transaction, 503, undefined, [['Retry-After', RETRY_AFTER_SECONDS]])
      else answerAlone(transaction, 501)
      return
    }
    const pending = this.#pending.add(transaction, app, undefined)
    const wire = this.#core.wireIn(request, received)
    app.send(newRequestMessage(wire, pending.id, received.listener, textFor(request)))
  }

  /** Handles an ACK other than that of a failure. */
  ack(message: SipMessage, received: Received): void {
    const leg = message.to_tag === '' ? undefined : this.#core.legOf(message)
    if (!leg) {
      this.#core.stack.transactions.counters.stray++
      return
    }
    const { answer } = leg
    const { host } = received.source
    const { seq } = message.cseq
    if (answer?.seq === seq) {
      const { transaction_id } = answer
      if (isFromCaller(host, leg, answer.transaction)) {
        answer.transaction.releaseAnswer()
        leg.stopAnswering()
      } else answer.acknowledged_elsewhere = true
      if (leg.acknowledged?.transaction_id !== transaction_id) leg.acknowledged = { transaction_id, seq, hosts: [] }
    }
    const { acknowledged } = leg
    // Further ACKs respond to retransmissions of our 2xx. The application gets the first one of each source: an ACK
    // cannot be refused, and a stranger's must not take the place of the peer's.
    if (acknowledged?.seq !== seq || acknowledged.hosts.includes(host) || acknowledged.hosts.length >= MAX_ACK_SOURCES)
      return
    acknowledged.hosts.push(host)
    if (!leg.app.open) return
    const wire = this.#core.wireIn(message, received)
    leg.app.sendHeld(dialogMessage(wire, acknowledged.transaction_id, leg.id, textFor(message)), leg)
  }

  cancel(cancel: ServerTransaction, invite: ServerTransaction | undefined): void {
    if (!invite && !this.#watch.admits(cancel.received)) {
      cancel.terminate()
      return
    }
    if (invite?.answered && invite.in_dialog) {
      // RFC 3261 §9.2: the CANCEL of a re-INVITE crossed its answer. It has no effect.
      answerAlone(cancel, 200)
      return
    }
    if (!invite || invite.answered) {
      answerAlone(cancel, 481)
      const leg = cancel.request.to_tag === '' ? undefined : this.#core.legOf(cancel.request)
      // A peer that cancels an answered call with the dialog's tags wants to end it.
      if (leg?.dialog.isFrom(cancel.received.source)) this.#core.hangUp(leg, 'CANCEL after 200 OK')
      return
    }
    const pending = this.#pending.of(invite)
    const tag = pending ? this.#pending.toTag(pending) : newTag(this.#core.stack.mark)
    cancel.respond(draftResponse(cancel.request, 200, tag), 200)
    invite.respond(draftResponse(invite.request, 487, tag), 487)
    if (!pending) return
    this.#pending.finish(pending)
    // The edge ends a re-INVITE without its application, and the dialog continues.
    if (pending.leg) {
      pending.leg.incoming = undefined
      return
    }
    const dialog_id = pending.early ? pending.early.id : ''
    if (pending.early) this.#core.dropLeg(pending.early)
    if (!pending.app.open) return
    const wire = { ...this.#core.wireIn(cancel.request, cancel.received), protocol: cancel.received.protocol }
    pending.app.sendHeld(
      dialogMessage(wire, pending.id, dialog_id, textFor(cancel.request)),
      pending.early ?? pending.hold,
    )
  }

  /** Handles a command `sip|<transaction>|` with a response. */
  respond(app: ControlClient, request_id: string, transaction_id: string, command: CommandMessage): void {
    this.#answers.respond(app, request_id, transaction_id, command)
  }

  #unknownDialog(transaction: ServerTransaction): void {
    const { method } = transaction.request
    if (method === 'INVITE') trying(transaction)
    // An application may know dialogs that we do not, for example after a restart. Like the reference, offer it their
    // requests.
    if (method === 'INVITE' || method === 'BYE' || method === 'UPDATE' || method === 'PRACK' || !KNOWN.has(method)) {
      answerAlone(transaction, 481)
      return
    }
    const app = this.#core.apps.pick(method.toLowerCase())
    if (app) this.#offer(transaction, app)
    else answerAlone(transaction, 481)
  }

  #refusal(request: SipMessage): { status: number; headers: readonly (readonly [string, string])[] } | undefined {
    const { method } = request
    const uri = parseUri(request.uri)
    if (!uri) return { status: 400, headers: [] }
    if (uri.scheme !== 'sip' && uri.scheme !== 'sips' && uri.scheme !== 'tel') return { status: 416, headers: [] }
    if (method === 'BYE' || method === 'UPDATE' || method === 'PRACK') return { status: 481, headers: [] }
    if (method === 'REGISTER' && request.lines('contact').includes('*') && readSeconds(request.get('expires')) !== 0) {
      return { status: 400, headers: [] }
    }
    if (method === 'INVITE' && this.#core.legs.has(dialogId(request.call_id, request.from_tag))) {
      // Another INVITE without a To tag for an existing call, which is not a merged request (RFC 3261 §8.2.2.2).
      return { status: 491, headers: [] }
    }
    // Only an INVITE may be forwarded. Other requests end here, so their hop count does not matter.
    if (method === 'INVITE' && request.max_forwards === 0) return { status: 483, headers: [] }
    return this.#core.refusalOfRequired(request)
  }

  /** Fails a pending request whose application disconnected. */
  orphaned(pending: PendingServer): void {
    if (pending.transaction.method === 'INVITE') this.#pending.abandon(pending, 503, RETRY_AFTER_SECONDS)
    else this.#pending.abandon(pending, 481)
  }
}

/**
 * Reports whether an ACK comes from where its INVITE came from or from the host of the caller's Contact. From anywhere
 * else it may be a stranger's, which must not end the retransmission of a 2xx that the caller may not have got.
 */
function isFromCaller(host: string, leg: AgentLeg, { received }: ServerTransaction): boolean {
  return host === received.source.host || host === parseUri(leg.dialog.target)?.host
}

/** The most sources from which the ACKs of one 2xx reach the application. */
const MAX_ACK_SOURCES = 8
const UNREGISTERED_405 = new Set(['REFER'])
