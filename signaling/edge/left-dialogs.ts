import { Dialog } from './dialog/dialog.ts'
import { bytesOf, type SipMessage } from './sip/message.ts'
import { parseMessage } from './sip/parse.ts'
import type { Address, Listener, Protocol } from './transport/types.ts'

// Dialogs that an earlier run of the edge left behind when it was killed: their far ends still talk to nobody. What was
// kept of their messages for the ladder is enough to hang up.

/** A message as it was kept, in the order of time within its Call-ID. */
export interface KeptMessage {
  readonly sip_call_id: string
  readonly direction: 'in' | 'out'
  readonly protocol: string
  /** `host:port` */
  readonly remote: string
  readonly text: string
}

/** Requests of the last moment may not have been kept, so the next CSeq number leaves room for them. */
const CSEQ_ROOM = 10

/**
 * The dialogs that were answered and not hung up. `listenerOf` tells by which listening point a transport is served;
 * what has none is left out, and so are WebSockets, which only the peer can open again.
 */
export function leftDialogs(
  messages: readonly KeptMessage[],
  listenerOf: (protocol: Protocol, host: string) => Listener | undefined,
): Dialog[] {
  const calls = new Map<string, Heard[]>()
  for (const kept of messages) {
    const parsed = parseMessage(bytesOf(kept.text))
    // What was taken out of a body makes it shorter than it says; the headers are whole.
    if (parsed.kind === 'junk') continue
    const known = calls.get(kept.sip_call_id) ?? []
    if (known.length === 0) calls.set(kept.sip_call_id, known)
    known.push({ ...kept, message: parsed.message, from: addressOf(kept.remote) })
  }
  return [...calls.values()].flatMap(heard => leftDialog(heard, listenerOf) ?? [])
}

interface Heard extends KeptMessage {
  readonly message: SipMessage
  readonly from: Address
}

function leftDialog(
  heard: readonly Heard[],
  listenerOf: (protocol: Protocol, host: string) => Listener | undefined,
): Dialog | undefined {
  if (heard.some(({ message }) => message.method === 'BYE')) return undefined
  const answer = heard.find(({ message }) => message.cseq.method === 'INVITE' && isSuccess(message))
  if (!answer) return undefined
  const protocol = answer.protocol as Protocol
  const listener = listenerOf(protocol, answer.from.host)
  if (!listener || protocol === 'ws' || protocol === 'wss') return undefined
  // A challenged INVITE was sent again under the same Call-ID: the CSeq of the answer tells which of them it was.
  const invite = heard.find(
    ({ message }) =>
      message.method === 'INVITE' && message.toTag === '' && message.cseq.seq === answer.message.cseq.seq,
  )
  if (!invite) return undefined
  const dialog = invite.direction === 'in' ? asCalled(invite, answer, listener) : asCaller(invite, answer)
  const ours = heard.filter(({ direction, message }) => direction === 'out' && message.isRequest)
  dialog.localSeq = Math.max(dialog.localSeq, ...ours.map(({ message }) => message.cseq.seq)) + CSEQ_ROOM
  for (const { direction, message, from } of heard) {
    const refreshes = message.cseq.method === 'INVITE' || message.cseq.method === 'UPDATE'
    if (direction !== 'in' || !refreshes || message.toTag === '') continue
    if (message.isRequest || isSuccess(message)) dialog.refreshTarget(message, from, protocol === 'udp')
  }
  return dialog
}

function asCalled(invite: Heard, answer: Heard, listener: Listener): Dialog {
  const received = {
    text: invite.text,
    protocol: invite.protocol as Protocol,
    source: invite.from,
    listener,
    connection: undefined,
  }
  return Dialog.asServer(invite.message, received, answer.message.toTag)
}

function asCaller({ message }: Heard, answer: Heard): Dialog {
  const dialog = Dialog.asClient({
    callId: message.callId,
    localTag: message.fromTag,
    local: message.get('from') ?? '',
    remote: message.get('to') ?? '',
    seq: message.cseq.seq,
    contact: message.get('contact') ?? '',
    uri: message.uri,
  })
  dialog.establish(answer.message, answer.from, { protocol: answer.protocol as Protocol, connection: undefined })
  return dialog
}

const isSuccess = (message: SipMessage): boolean => message.status >= 200 && message.status < 300

function addressOf(remote: string): Address {
  const colon = remote.lastIndexOf(':')
  return { host: remote.slice(0, colon), port: Number(remote.slice(colon + 1)) }
}
