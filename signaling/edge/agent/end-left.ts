import type { LeftCall } from '../left-calls.ts'
import { newTag } from '../sip/ids.ts'
import { draftResponse } from '../sip/message.ts'
import { branchOf, cancelOf, withoutBody } from '../sip/sent-text.ts'
import type { EdgeStack } from '../stack.ts'
import { type ClientEvents, UNHEARD } from '../transaction/client.ts'
import { RETRY_AFTER_SECONDS } from '../transaction/layer.ts'

// Ends the calls of a run that was killed, so that no peer keeps talking, ringing or waiting.

const REASON = 'SIP;cause=503;text="SIP server was restarted"'

/** Sends BYE for an answered call, 503 for an incoming one and CANCEL for an outgoing one. */
export function endLeftCall(stack: EdgeStack, left: LeftCall): void {
  if (left.kind === 'answered') {
    const seq = left.dialog.nextSeq()
    stack.request('BYE', left.dialog.nextHop(), () => left.dialog.draft('BYE', seq).add('Reason', REASON), UNHEARD)
  } else if (left.kind === 'called') {
    const transaction = stack.transactions.resumeServer(left.invite)
    const answer = transaction && draftResponse(transaction.request, 503, left.tag === '' ? newTag() : left.tag)
    if (answer) transaction.respond(answer.add('Retry-After', RETRY_AFTER_SECONDS).add('Reason', REASON), 503)
  } else takeBack(stack, left)
}

// RFC 3261 §9.1: a CANCEL waits for a provisional response. If none was kept, the INVITE is sent again and the peer
// repeats its response. That INVITE has no body, because the kept body is redacted and the peer ignores the body of a
// retransmission. If the CANCEL crosses a 2xx, the 2xx is acknowledged and its call is ended by a BYE.
function takeBack(stack: EdgeStack, { invite, dialog, rang }: LeftCall & { kind: 'calling' }): void {
  const { transactions } = stack
  const { destination, text } = invite
  let cancelled = false
  const cancelOnce = (): void => {
    if (cancelled) return
    cancelled = true
    stack.cancel(invite, cancelOf(text).add('Reason', REASON).serialize())
    transactions.wheel.after(64 * transactions.scale.t1, () => resumed.terminate())
  }
  let answered = ''
  const request = { method: 'INVITE', branch: branchOf(text), text: withoutBody(text), destination }
  const events: ClientEvents = {
    ...UNHEARD,
    response: (response, from) => {
      if (response.status < 200) cancelOnce()
      if (response.status < 200 || response.status >= 300) return
      if (answered !== response.to_tag)
        dialog.establish(response, from, { protocol: destination.protocol, connection: undefined })
      const seq = response.cseq.seq
      stack.request('ACK', dialog.nextHop(), () => dialog.draft('ACK', seq), UNHEARD)
      if (answered === response.to_tag) return
      answered = response.to_tag
      endLeftCall(stack, { kind: 'answered', dialog })
    },
  }
  const resumed = rang ? transactions.resumeInvite(request, events) : transactions.send(request, events)
  if (rang) cancelOnce()
}
