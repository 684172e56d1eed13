import { isAtName, SipDialog } from './dialog/dialog.ts'
import { bytesOf, type SipMessage } from './sip/message.ts'
import { parseMessage } from './sip/parse.ts'
import type { SentRequest } from './stack.ts'
import type { Address, Listener, Protocol, Received } from './transport/types.ts'

// Calls that an earlier run of the edge left behind when it was killed. Their peers still talk, ring or wait. The
// messages that the ladder kept suffice to end these calls.

/** A message of the ladder. The messages of a Call-ID are in order of time. */
export interface KeptMessage {
  readonly sip_call_id: string
  readonly direction: 'in' | 'out'
  readonly protocol: string
  /** `host:port` */
  readonly remote: string
  readonly text: string
}

/** The last requests before the kill may be missing, so the next CSeq number skips this many. */
const CSEQ_ROOM = 10

/** A leg to end, with the state that it reached. */
export type LeftCall =
  /** Answered but not hung up. */
  | { readonly kind: 'answered'; readonly dialog: SipDialog }
  /** An incoming call without a final response. `tag` is the To tag of our provisional responses, or ''. */
  | { readonly kind: 'called'; readonly invite: Received; readonly tag: string }
  /** An outgoing call without a final response. `rang` is true when a provisional one came. */
  | { readonly kind: 'calling'; readonly invite: SentRequest; readonly dialog: SipDialog; readonly rang: boolean }

type ListenerOf = (protocol: Protocol, host: string) => Listener | undefined

/**
 * Returns the legs that were not ended. `listenerOf` returns the listening point for a protocol and a host. Legs
 * without one are omitted, and so are legs over WebSocket, because only the peer can open that connection again.
 */
export function leftCalls(messages: readonly KeptMessage[], listenerOf: ListenerOf): LeftCall[] {
  const calls = new Map<string, Heard[]>()
  for (const kept of messages) {
    const text = bytesOf(kept.text)
    const parsed = parseMessage(text)
    // Redaction may leave a body shorter than its Content-Length; the headers are complete.
    if (parsed.kind === 'junk') continue
    const known = calls.get(kept.sip_call_id) ?? []
    if (known.length === 0) calls.set(kept.sip_call_id, known)
    const protocol = kept.protocol as Protocol
    known.push({ ...kept, protocol, text, message: parsed.message, from: addressOf(kept.remote) })
  }
  return [...calls.values()].flatMap(heard => leftCall(heard, listenerOf) ?? [])
}

interface Heard extends KeptMessage {
  readonly protocol: Protocol
  readonly message: SipMessage
  readonly from: Address
}

function leftCall(heard: readonly Heard[], listenerOf: ListenerOf): LeftCall | undefined {
  if (heard.some(({ message }) => message.method === 'BYE')) return undefined
  const answer = heard.find(({ message }) => message.cseq.method === 'INVITE' && isSuccess(message))
  // A challenged INVITE is sent again under the same Call-ID. The CSeq of the answer identifies the right one.
  const invite = heard.findLast(
    ({ message }) =>
      message.method === 'INVITE' &&
      message.to_tag === '' &&
      (answer === undefined || message.cseq.seq === answer.message.cseq.seq),
  )
  if (!invite || invite.protocol === 'ws' || invite.protocol === 'wss') return undefined
  const listener = listenerOf(invite.protocol, invite.from.host)
  if (!listener) return undefined
  if (answer) return { kind: 'answered', dialog: answeredDialog(heard, invite, answer, listener) }
  const responses = heard.filter(({ message }) => !message.is_request && message.branch === invite.message.branch)
  if (responses.some(({ message }) => message.status >= 200 && message.cseq.method === 'INVITE')) return undefined
  if (invite.direction === 'in') {
    const tag = responses.find(({ message }) => message.to_tag !== '')?.message.to_tag ?? ''
    return { kind: 'called', invite: receivedBy(invite, listener), tag }
  }
  const destination = { protocol: invite.protocol, ...invite.from }
  const dialog = asCaller(invite)
  leaveRoom(dialog, heard)
  return { kind: 'calling', invite: { text: invite.text, listener, destination }, dialog, rang: responses.length > 0 }
}

function answeredDialog(heard: readonly Heard[], invite: Heard, answer: Heard, listener: Listener): SipDialog {
  const { message, from, protocol } = answer
  const dialog =
    invite.direction === 'in'
      ? SipDialog.asServer(invite.message, receivedBy(invite, listener), message.to_tag)
      : asCaller(invite)
  if (invite.direction === 'out') dialog.establish(message, from, { protocol, connection: undefined })
  leaveRoom(dialog, heard)
  for (const { direction, message, from } of heard) {
    const refreshes = message.cseq.method === 'INVITE' || message.cseq.method === 'UPDATE'
    if (direction !== 'in' || !refreshes || message.to_tag === '') continue
    if (message.is_request || isSuccess(message)) dialog.refreshTarget(message, from, protocol === 'udp')
  }
  // The port of a peer that called over a connection is gone with it. Its name may lead to one where it listens.
  if (invite.direction === 'in' && invite.protocol !== 'udp' && isAtName(dialog.target)) dialog.source = undefined
  return dialog
}

function leaveRoom(dialog: SipDialog, heard: readonly Heard[]): void {
  const ours = heard.filter(({ direction, message }) => direction === 'out' && message.is_request)
  dialog.local_seq = Math.max(dialog.local_seq, ...ours.map(({ message }) => message.cseq.seq)) + CSEQ_ROOM
}

const receivedBy = ({ text, protocol, from }: Heard, listener: Listener): Received => ({
  text,
  protocol,
  source: from,
  listener,
  connection: undefined,
})

function asCaller({ message }: Heard): SipDialog {
  return SipDialog.asClient({
    call_id: message.call_id,
    local_tag: message.from_tag,
    local: message.get('from') ?? '',
    remote: message.get('to') ?? '',
    seq: message.cseq.seq,
    contact: message.get('contact') ?? '',
    uri: message.uri,
  })
}

const isSuccess = (message: SipMessage): boolean => message.status >= 200 && message.status < 300

function addressOf(remote: string): Address {
  const colon = remote.lastIndexOf(':')
  return { host: remote.slice(0, colon), port: Number(remote.slice(colon + 1)) }
}
