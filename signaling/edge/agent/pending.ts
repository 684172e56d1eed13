import { readRAck } from '../../../core/domain/sip/values.ts'
import type { ControlClient } from '../control/client.ts'
import { dialogMessage } from '../control/wire.ts'
import { newSequence, newTag, newUuid } from '../sip/ids.ts'
import { Draft, draftResponse, type SipMessage, withTopVia } from '../sip/message.ts'
import type { ServerTransaction } from '../transaction/server.ts'
import type { Received } from '../transport/types.ts'
import type { AgentCore } from './core.ts'
import type { AgentLeg, PendingServer } from './leg.ts'

// Requests from the network that wait for an application, and responses that the edge sends itself.

export class PendingRequests {
  readonly #core: AgentCore
  readonly #by_transaction = new WeakMap<ServerTransaction, PendingServer>()

  constructor(core: AgentCore) {
    this.#core = core
  }

  /** Adds a request that an application is to answer. The request fails if no answer comes in time. */
  add(transaction: ServerTransaction, app: ControlClient, leg: AgentLeg | undefined): PendingServer {
    const { wheel } = this.#core.stack.transactions
    const pending: PendingServer = {
      id: newUuid(),
      transaction,
      app,
      leg,
      to_tag: transaction.request.to_tag,
      early: undefined,
      deadline: undefined,
      update: undefined,
      reliable: undefined,
      last_rseq: 0,
      hold: this.#core.newHold(),
    }
    // Without an answer, an INVITE fails after 128×T1 (64 s). Others fail after 64×T1, when the peer has given up too.
    const invite = transaction.method === 'INVITE'
    leg?.unjudged.add(transaction)
    pending.deadline = wheel.after(this.#core.patience_ms * (invite ? 2 : 1), () => {
      this.abandon(pending, invite ? 503 : 500)
    })
    this.#core.servers.set(pending.id, pending)
    this.#by_transaction.set(transaction, pending)
    return pending
  }

  /** Returns the pending request of a transaction. A request that was handed to a proxy is no longer pending. */
  of(transaction: ServerTransaction): PendingServer | undefined {
    const pending = this.#by_transaction.get(transaction)
    return pending && this.#core.servers.has(pending.id) ? pending : undefined
  }

  /** Returns our To tag. Chooses one if there is none yet. */
  toTag(pending: PendingServer): string {
    if (pending.to_tag === '') pending.to_tag = newTag(this.#core.stack.mark)
    return pending.to_tag
  }

  /** Fails a request that its application does not answer. A peer takes a 503 without `retry_after` for a 500. */
  abandon(pending: PendingServer, status: number, retry_after?: string): void {
    this.finish(pending)
    if (pending.leg?.incoming === pending) pending.leg.incoming = undefined
    if (pending.early) this.#core.dropLeg(pending.early)
    const { leg, transaction } = pending
    // The application has not judged the sender of the BYE, so the edge compares its source.
    if (transaction.method === 'BYE' && leg?.dialog.isFrom(transaction.received.source)) this.#core.dropLeg(leg)
    const reason = status === 500 ? 'Internal Server Error' : undefined
    const draft = draftResponse(pending.transaction.request, status, this.toTag(pending), reason)
    if (retry_after !== undefined) draft.add('Retry-After', retry_after)
    pending.transaction.respond(draft, status)
    // The application may still be calling others for this caller. A re-INVITE ends without it.
    if (transaction.method === 'INVITE' && !leg) this.cancelled(pending, transaction.request, transaction.received)
  }

  /** Gives the application a CANCEL of an INVITE that has ended. `by`: the message that ended it. */
  cancelled(invite: PendingServer, by: SipMessage, received: Received): void {
    const { app, early } = invite
    if (!app.open) return
    const text = cancelText(invite.transaction.request)
    app.sendHeld(dialogMessage(this.#core.wireIn(by, received), invite.id, early?.id ?? '', text), early ?? invite.hold)
  }

  /** Removes a request that is answered or never will be. */
  finish(pending: PendingServer): void {
    if (pending.update) {
      // The INVITE ended first, so its transaction id can no longer serve to answer the UPDATE.
      pending.update.respond(draftResponse(pending.update.request, 500, ''), 500)
      this.updateAnswered(pending)
    }
    if (this.#core.servers.has(pending.id)) pending.leg?.unjudged.remove(pending.transaction)
    pending.deadline?.cancel()
    this.#stopReliable(pending)
    this.#core.servers.delete(pending.id)
    this.#by_transaction.delete(pending.transaction)
  }

  /** Forgets the UPDATE that came before the INVITE was answered. */
  updateAnswered(invite: PendingServer): void {
    if (invite.update) invite.early?.unjudged.remove(invite.update)
    invite.update = undefined
  }

  /** Answers an open INVITE whose call ended before. */
  endInvite(invite: PendingServer): void {
    invite.transaction.respond(draftResponse(invite.transaction.request, 487, this.toTag(invite)), 487)
    this.finish(invite)
  }

  /** Sends a 1xx and retransmits it until its PRACK arrives (RFC 3262 §3). */
  sendReliable(pending: PendingServer, draft: Draft, status: number): string {
    const { wheel, scale } = this.#core.stack.transactions
    pending.last_rseq = pending.last_rseq === 0 ? newSequence() : pending.last_rseq + 1
    draft.set('RSeq', String(pending.last_rseq))
    const text = pending.transaction.respond(draft, status) ?? ''
    this.#stopReliable(pending)
    const reliable = {
      rseq: pending.last_rseq,
      text,
      timer: undefined as PendingServer['deadline'],
      // RFC 3262 §3: without a PRACK within 64×T1, reject the INVITE.
      deadline: wheel.after(this.#core.patience_ms, () => this.abandon(pending, 504)),
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

  /** Returns what a PRACK acknowledges (RFC 3262 §3): the current reliable 1xx, or one that our 2xx has overtaken. */
  acknowledges({ incoming, overtaken }: AgentLeg, prack: SipMessage): 'current' | 'overtaken' | undefined {
    const rack = readRAck(prack.get('rack'))
    if (rack?.cseq.method !== 'INVITE') return undefined
    const { seq } = rack.cseq
    if (seq === incoming?.transaction.request.cseq.seq && rack.rseq === incoming.reliable?.rseq) return 'current'
    return seq === overtaken?.seq && rack.rseq === overtaken.rseq ? 'overtaken' : undefined
  }

  /** Stops the retransmission of the reliable 1xx that a PRACK acknowledges. */
  acknowledged(leg: AgentLeg, prack: SipMessage): void {
    const which = this.acknowledges(leg, prack)
    if (which === 'current' && leg.incoming) this.#stopReliable(leg.incoming)
    if (which === 'overtaken') leg.overtaken = undefined
  }

  #stopReliable(pending: PendingServer): void {
    pending.reliable?.timer?.cancel()
    pending.reliable?.deadline.cancel()
    pending.reliable = undefined
  }
}

function cancelText(invite: SipMessage): string {
  const draft = Draft.request('CANCEL', invite.uri)
  for (const id of ['via', 'from', 'to', 'call-id'] as const) draft.add(id, invite.get(id) ?? '')
  return draft.add('CSeq', `${invite.cseq.seq} CANCEL`).add('Max-Forwards', '70').serialize()
}

/** Answers a request without an application. */
export function answerAlone(
  transaction: ServerTransaction,
  status: number,
  reason?: string,
  headers: readonly (readonly [string, string])[] = [],
): void {
  const draft = draftResponse(transaction.request, status, newTag(), reason)
  for (const [name, value] of headers) draft.add(name, value)
  transaction.respond(draft, status)
}

/** Sends a 100 at once (RFC 3261 §17.2.1). */
export function trying(transaction: ServerTransaction): void {
  transaction.respond(draftResponse(transaction.request, 100, ''), 100)
}

/** Returns the message for the application: unchanged except for the packet's source in the topmost Via. */
export function textFor(message: SipMessage): string {
  return withTopVia(message, message.get('via') ?? '')
}

export function hasCredentials(request: SipMessage): boolean {
  return request.has('authorization') || request.has('proxy-authorization')
}
