import { dialogMessage } from '../control/wire.ts'
import type { SipMessage } from '../sip/message.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'
import type { AgentCore } from './core.ts'
import type { AgentLeg } from './leg.ts'
import { answerAlone, type PendingRequests, textFor, trying } from './pending.ts'
import { refreshedByPeer, sessionTooSmall } from './session-timer.ts'

// The peer's requests in its dialogs (RFC 3261 §12.2.2, §14.2, §15.1.2). Who knows a dialog's tags need not be its
// peer: the application knows whose sources count. A request changes nothing here until its answer has judged it.

/** Reports whether the application refuses a request because of who has sent it. */
export const refusesStranger = (status: number): boolean => status === 401 || status === 403 || status === 407

export class DialogRequests {
  readonly #core: AgentCore
  readonly #pending: PendingRequests

  constructor(core: AgentCore, pending: PendingRequests) {
    this.#core = core
    this.#pending = pending
  }

  request(transaction: ServerTransaction, leg: AgentLeg): void {
    const { request, received } = transaction
    const { method } = request
    const newest = Math.max(leg.dialog.remote_seq, leg.unjudged.newest(transaction))
    if (!isOtherFork(request, leg) && request.cseq.seq < newest) {
      // RFC 3261 §12.2.2: reject a CSeq number below the last one.
      answerAlone(transaction, 500, undefined, method === 'INVITE' ? [['Retry-After', '1']] : [])
      return
    }
    if (method === 'INVITE') trying(transaction)
    if (!leg.app.open) {
      answerAlone(transaction, 481)
      if (method === 'BYE' && leg.dialog.isFrom(received.source)) this.#core.dropLeg(leg)
      return
    }
    if (method === 'BYE') {
      this.#bye(transaction, leg)
      return
    }
    if (method === 'PRACK' && !this.#pending.acknowledges(leg, request)) {
      answerAlone(transaction, 481)
      return
    }
    const refused = this.#core.refusalOfRequired(request)
    if (refused) {
      answerAlone(transaction, refused.status, undefined, refused.headers)
      return
    }
    if ((method === 'INVITE' || method === 'UPDATE') && sessionTooSmall(request)) {
      answerAlone(transaction, 422, undefined, [['Min-SE', '90']])
      return
    }
    if (method === 'INVITE' && !this.#mayReinvite(transaction, leg)) return
    const wire = this.#core.wireIn(request, received)
    if (method === 'UPDATE' && leg.incoming && leg.role === 'uas' && leg.state === 'early') {
      if (leg.incoming.update) {
        answerAlone(transaction, 500, undefined, [['Retry-After', '1']])
        return
      }
      leg.incoming.update = transaction
      leg.unjudged.add(transaction)
      leg.app.sendHeld(dialogMessage(wire, leg.incoming.id, leg.id, textFor(request)), leg)
      return
    }
    const pending = this.#pending.add(transaction, leg.app, leg)
    if (method === 'INVITE') leg.incoming = pending
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }

  /** Applies a request to its dialog after its final answer. One that was refused as a stranger's changes nothing. */
  judged({ request, received }: ServerTransaction, leg: AgentLeg, status: number): void {
    if (refusesStranger(status)) return
    const { dialog } = leg
    if (dialog.remote_tag === '') dialog.remote_tag = request.from_tag
    if (!isOtherFork(request, leg)) dialog.remote_seq = Math.max(dialog.remote_seq, request.cseq.seq)
    // The peer may have reconnected, so later requests go over the newest connection.
    if (dialog.connection && received.connection) dialog.connection = received.connection
    const { method } = request
    if (method === 'INVITE' || method === 'UPDATE') refreshedByPeer(this.#core, leg)
    else if (method === 'PRACK') this.#pending.acknowledged(leg, request)
    else if (method === 'BYE') this.#ended(request, received, leg, status)
  }

  // RFC 3261 §14.2: only one INVITE at a time, and none while ours is open.
  #mayReinvite(transaction: ServerTransaction, leg: AgentLeg): boolean {
    if (leg.incoming) {
      answerAlone(transaction, 500, undefined, [['Retry-After', '1']])
      return false
    }
    if ((leg.outgoing && !leg.outgoing.finished) || leg.session?.refreshing) {
      answerAlone(transaction, 491)
      return false
    }
    return true
  }

  #bye(transaction: ServerTransaction, leg: AgentLeg): void {
    const { request, received } = transaction
    const wire = this.#core.wireIn(request, received)
    const early = leg.incoming !== undefined && leg.state === 'early'
    // Applications expect a CANCEL in place of a BYE before the answer. Only a BYE from elsewhere is theirs to judge.
    if (early && leg.dialog.isFrom(received.source)) {
      answerAlone(transaction, 200)
      this.#ended(request, received, leg, 200)
      return
    }
    // The leg ends with the application's answer: only the application knows whether a stranger has sent the BYE.
    const pending = this.#pending.add(transaction, leg.app, leg)
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }

  /** Ends a leg after the peer's BYE. Its open INVITE ends with 487 (RFC 3261 §15.1.2). */
  #ended(bye: SipMessage, received: Received, leg: AgentLeg, status: number): void {
    const invite = leg.incoming
    const early = invite !== undefined && leg.state === 'early'
    // An application that knows no such dialog goes on with its INVITE.
    if (early && status >= 300) return
    if (invite) this.#pending.endInvite(invite)
    leg.incoming = undefined
    this.#core.dropLeg(leg)
    // The caller gives up with BYE instead of CANCEL. The application gets a CANCEL.
    if (early) this.#pending.cancelled(invite, bye, received)
  }
}

/** Reports whether a request belongs to another early dialog of the leg. Each has its own CSeq numbers. */
function isOtherFork(request: SipMessage, leg: AgentLeg): boolean {
  return leg.forks !== undefined && leg.dialog.remote_tag !== request.from_tag
}
