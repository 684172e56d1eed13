import type { SipMessage } from '../sip/message.ts'
import type { Received } from '../transport/types.ts'

/**
 * Returns the key of a server transaction (RFC 3261 §17.2.3). The Call-ID stands for the sent-by: some clients behind a
 * NAT name their public address in the CANCEL of an INVITE that named their private one. A branch without the magic
 * cookie comes from an RFC 2543 peer: the headers that it repeats in ACK and CANCEL identify the transaction then. The
 * key holds the source address, because a server challenges neither CANCEL nor ACK (§22.1). Otherwise each host that
 * saw an INVITE could cancel it.
 */
export function serverKey(message: SipMessage, { source }: Received): string {
  const via = message.via
  const branch = message.branch
  const method = message.method === 'ACK' ? 'INVITE' : message.method
  if (via && branch.startsWith('z9hG4bK') && branch.length > 7) {
    return `${branch}|${message.call_id}|${source.host}|${method}`
  }
  return `${message.call_id}|${message.cseq.seq}|${message.from_tag}|${via?.host ?? ''}|${via?.port ?? ''}|${branch}|${source.host}|${method}`
}

/** Returns the key of the INVITE that a CANCEL with this key cancels (RFC 3261 §9.2). */
export function inviteKey(cancel_key: string): string {
  return `${cancel_key.slice(0, cancel_key.lastIndexOf('|'))}|INVITE`
}
