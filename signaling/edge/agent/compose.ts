import { uriHost } from '../../../core/domain/identity/address.ts'
import { parseCSeq } from '../../../core/domain/sip/values.ts'
import type { CommandMessage } from '../control/command.ts'
import type { SipDialog } from '../dialog/dialog.ts'
import { listenerAddress } from '../dialog/dialog.ts'
import type { Draft } from '../sip/message.ts'
import { cancelOf, headerOf } from '../sip/sent-text.ts'
import { splitList, tagOf, transportOf, uriIn } from '../sip/uri.ts'
import type { SentRequest } from '../stack.ts'
import type { Listener } from '../transport/types.ts'

// Rules for the headers of messages that an application sends: which ones it may set and which ones the server adds.

/** Headers that the server owns. An application cannot set them. */
const OWNED = new Set(['via', 'route', 'record-route', 'rseq', 'content-length'])
const OWNED_IN_RESPONSE = new Set([...OWNED, 'from', 'to', 'call-id', 'cseq', 'contact'])
const OWNED_IN_DIALOG = new Set([...OWNED, 'from', 'to', 'call-id', 'cseq', 'contact', 'max-forwards'])
const OWNED_IN_REQUEST = new Set([...OWNED, 'from', 'to', 'call-id', 'cseq', 'contact', 'max-forwards'])
const OWNED_IN_CANCEL = new Set([...OWNED_IN_DIALOG, 'content-type', 'supported', 'require'])

type Composition = 'response' | 'dialog' | 'request' | 'cancel'

const OWNED_BY: Readonly<Record<Composition, ReadonlySet<string>>> = {
  response: OWNED_IN_RESPONSE,
  dialog: OWNED_IN_DIALOG,
  request: OWNED_IN_REQUEST,
  cancel: OWNED_IN_CANCEL,
}

/** Copies the application's own headers into a message. */
export function addOwnHeaders(draft: Draft, command: CommandMessage, kind: Composition, listener: Listener): void {
  const owned = OWNED_BY[kind]
  for (const h of command.headers) {
    if (owned.has(h.id)) continue
    const value =
      h.id === 'p-asserted-identity'
        ? splitList(h.value)
            .map(v => withRealHost(v, listener))
            .join(', ')
        : h.value
    draft.add(h.name, value)
  }
}

/** Adds the application's Contact, with our address in place of `localhost`, otherwise our own. Returns the first. */
export function addContacts(
  draft: Draft,
  command: CommandMessage,
  listener: Listener,
  own: string | undefined,
): string {
  let first = ''
  for (const h of command.headers) {
    if (h.id !== 'contact') continue
    for (const value of splitList(h.value)) {
      const contact = value === '*' ? value : withRealHost(value, listener, true)
      if (first === '') first = contact
      draft.add('Contact', contact)
    }
  }
  if (first !== '' || own === undefined) return first
  draft.add('Contact', own)
  return own
}

/** Returns the CANCEL of an INVITE, with the headers that the application adds. */
export function cancelFor(sent: SentRequest, command: CommandMessage | undefined): string {
  const draft = cancelOf(sent.text)
  if (command) addOwnHeaders(draft, command, 'cancel', sent.listener)
  return draft.serialize()
}

/** Drafts the ACK of a 2xx to our INVITE, with its CSeq number and credentials (RFC 3261 §13.2.2.4, §22.1). */
export function ackOf(dialog: SipDialog, { text }: Pick<SentRequest, 'text'>): Draft {
  const draft = dialog.draft('ACK', parseCSeq(headerOf(text, 'CSeq'))?.seq ?? dialog.local_seq)
  for (const name of ['Authorization', 'Proxy-Authorization']) {
    const value = headerOf(text, name)
    if (value !== undefined) draft.add(name, value)
  }
  return draft
}

/** Adds the body. Recognises SDP without a Content-Type; returns false for any other body without one. */
export function addBody(draft: Draft, command: CommandMessage): boolean {
  draft.body = command.body
  if (command.body === '' || draft.get('content-type') !== undefined) return true
  if (!command.body.startsWith('v=0')) return false
  draft.add('Content-Type', 'application/sdp')
  return true
}

/**
 * Replaces the host `localhost` in an address by the address of the listening point. Puts the URI in angle brackets.
 */
export function withRealHost(value: string, listener: Listener, contact = false, anywhere = false): string {
  const at = value.indexOf('@localhost')
  const bare = anywhere && at < 0 ? hostLocalhost(value) : -1
  const host_at = at >= 0 ? at + 1 : bare
  if (host_at < 0) return value
  let end = host_at + 'localhost'.length
  // A port after the placeholder is replaced too.
  if (value.charCodeAt(end) === 58) {
    end++
    while (value.charCodeAt(end) >= 48 && value.charCodeAt(end) <= 57) end++
  }
  // Without this parameter, a peer that called us over TCP would send its next request over UDP.
  const transport =
    !contact || listener.protocol === 'udp' || transportOf(uriIn(value)) !== null
      ? ''
      : `;transport=${listener.protocol}`
  const real = `${uriHost(listener.advertised_host)}:${listener.port}${transport}`
  const before = value.slice(0, host_at)
  const after = value.slice(end)
  if (before.includes('<')) return `${before}${real}${after}`
  const params = after.indexOf(';')
  return params < 0 ? `<${before}${real}${after}>` : `<${before}${real}${after.slice(0, params)}>${after.slice(params)}`
}

function hostLocalhost(value: string): number {
  for (const scheme of ['sip:localhost', 'sips:localhost']) {
    const at = value.indexOf(scheme)
    if (at >= 0) return at + scheme.length - 'localhost'.length
  }
  return -1
}

/** Returns the From value of a new request: the application's or else the listening point's, with a tag. */
export function fromValue(given: string | undefined, listener: Listener, tag: string): string {
  const value = given === undefined ? listenerAddress(listener) : withRealHost(given, listener, false, true)
  const bracketed = value.includes('<') ? value : bracket(value)
  return tagOf(bracketed) !== '' ? bracketed : `${bracketed};tag=${tag}`
}

function bracket(value: string): string {
  const semi = value.indexOf(';')
  return semi < 0 ? `<${value}>` : `<${value.slice(0, semi)}>${value.slice(semi)}`
}
