import { dialogMessage } from '../control/wire.ts'
import { Draft, draftResponse, type SipMessage } from '../sip/message.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { AgentCore } from './core.ts'
import type { Leg } from './leg.ts'
import { type PendingRequests, refuse, textFor, trying } from './pending.ts'
import { refreshedByPeer, sessionTooSmall } from './session-timer.ts'

// The peer's requests in its dialogs (RFC 3261 §12.2.2, §14.2, §15.1.2).

export class DialogRequests {
  readonly #core: AgentCore
  readonly #pending: PendingRequests

  constructor(core: AgentCore, pending: PendingRequests) {
    this.#core = core
    this.#pending = pending
  }

  request(transaction: ServerTransaction, leg: Leg): void {
    const { request, received } = transaction
    const { method } = request
    const other_fork = leg.forks !== undefined && leg.dialog.remote_tag !== request.from_tag
    if (!other_fork && request.cseq.seq < leg.dialog.remote_seq) {
      // RFC 3261 §12.2.2: reject a CSeq number below the last one.
      refuse(transaction, 500, undefined, method === 'INVITE' ? [['Retry-After', '1']] : [])
      return
    }
    const seq_before = leg.dialog.remote_seq
    if (!other_fork) leg.dialog.remote_seq = request.cseq.seq
    if (leg.dialog.remote_tag === '') leg.dialog.remote_tag = request.from_tag
    if (method === 'INVITE') trying(transaction)
    if (!leg.app.open) {
      refuse(transaction, 481)
      if (method === 'BYE') this.#core.dropLeg(leg)
      return
    }
    if (method === 'BYE') {
      this.#bye(transaction, leg, seq_before)
      return
    }
    if (method === 'PRACK' && leg.incoming && !this.#pending.acknowledges(leg.incoming, request)) {
      refuse(transaction, 481)
      return
    }
    if (method === 'PRACK' && !leg.incoming) {
      refuse(transaction, 481)
      return
    }
    const refused = this.#core.refusalOfRequired(request)
    if (refused) {
      refuse(transaction, refused.status, undefined, refused.headers)
      return
    }
    if ((method === 'INVITE' || method === 'UPDATE') && sessionTooSmall(request)) {
      refuse(transaction, 422, undefined, [['Min-SE', '90']])
      return
    }
    if (method === 'INVITE' && !this.#mayReinvite(transaction, leg)) return
    if (method === 'INVITE' || method === 'UPDATE') refreshedByPeer(this.#core, leg)
    const wire = this.#core.wireIn(request, received)
    if (method === 'UPDATE' && leg.incoming && leg.role === 'uas' && leg.state === 'early') {
      if (leg.incoming.update) {
        refuse(transaction, 500, undefined, [['Retry-After', '1']])
        return
      }
      leg.incoming.update = transaction
      leg.app.sendHeld(dialogMessage(wire, leg.incoming.id, leg.id, textFor(request)), leg)
      return
    }
    const pending = this.#pending.add(transaction, leg.app, leg)
    pending.seq_before = seq_before
    if (method === 'INVITE') leg.incoming = pending
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }

  // RFC 3261 §14.2: only one INVITE at a time, and none while ours is open.
  #mayReinvite(transaction: ServerTransaction, leg: Leg): boolean {
    if (leg.incoming) {
      refuse(transaction, 500, undefined, [['Retry-After', '1']])
      return false
    }
    if ((leg.outgoing && !leg.outgoing.finished) || leg.session?.refreshing) {
      refuse(transaction, 491)
      return false
    }
    return true
  }

  #bye(transaction: ServerTransaction, leg: Leg, seq_before: number): void {
    const { request, received } = transaction
    const wire = this.#core.wireIn(request, received)
    const invite = leg.incoming
    if (invite && leg.state === 'early') {
      // The caller gives up with BYE instead of CANCEL (RFC 3261 §15.1.2). The application gets a CANCEL.
      refuse(transaction, 200)
      invite.transaction.respond(draftResponse(invite.transaction.request, 487, this.#pending.toTag(invite)), 487)
      this.#pending.finish(invite)
      this.#core.records.stop(leg, 'network', 'call-canceled', textFor(invite.transaction.request))
      this.#core.dropLeg(leg)
      leg.app.sendHeld(dialogMessage(wire, invite.id, leg.id, cancelText(invite.transaction.request)), leg)
      return
    }
    if (invite) {
      // RFC 3261 §15.1.2: open requests end with 487.
      invite.transaction.respond(draftResponse(invite.transaction.request, 487, ''), 487)
      this.#pending.finish(invite)
      leg.incoming = undefined
    }
    // The record ends as it does in the reference, but the leg with the application's answer: only the application
    // knows whether a stranger has sent the BYE.
    this.#core.records.stop(leg, 'network', 'normal-release', textFor(request))
    const pending = this.#pending.add(transaction, leg.app, leg)
    pending.seq_before = seq_before
    leg.app.sendHeld(dialogMessage(wire, pending.id, leg.id, textFor(request)), leg)
  }
}

function cancelText(invite: SipMessage): string {
  const draft = Draft.request('CANCEL', invite.uri)
  for (const id of ['via', 'from', 'to', 'call-id'] as const) draft.add(id, invite.get(id) ?? '')
  return draft.add('CSeq', `${invite.cseq.seq} CANCEL`).add('Max-Forwards', '70').serialize()
}
