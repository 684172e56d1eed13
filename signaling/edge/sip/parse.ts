import { LONGEST_CALL_ID } from '../../../core/domain/ladder/message.ts'
import { endOfToken, headerKind, isToken, valueIn } from './headers.ts'
import { SipMessage } from './message.ts'
import { parseDigits, parseNameAddress, parseUri, parseVia, splitList } from './uri.ts'

// Parses received bytes. It rejects what RFC 4475 says to reject and tolerates what RFC 4475 says to tolerate. Parsing
// is one pass, linear in the input. Nothing here throws.

/** Bounds on one message (threats §2.2). */
export interface MessageLimits {
  /** Bytes of a whole message. */
  readonly message_bytes: number
  /** Header lines of a message. */
  readonly header_count: number
}

export const DEFAULT_MESSAGE_LIMITS: MessageLimits = { message_bytes: 65_536, header_count: 256 }

/**
 * The result of parsing a datagram or a framed message. `refused` carries a message that is complete enough to be
 * answered with `status`. `junk` cannot be answered.
 */
type Parsed =
  | { readonly kind: 'message'; readonly message: SipMessage }
  | { readonly kind: 'refused'; readonly message: SipMessage; readonly status: number; readonly why: string }
  | { readonly kind: 'junk'; readonly why: string }

/**
 * Parses one message from a byte string that begins with its start line. Bytes after the body, which a datagram may
 * hold, are ignored.
 */
export function parseMessage(text: string, limits: MessageLimits = DEFAULT_MESSAGE_LIMITS): Parsed {
  const message = new SipMessage()
  message.raw = text
  message.bytes = text.length
  const line_end = text.indexOf('\n')
  if (line_end < 1) return { kind: 'junk', why: 'no start line' }
  const crlf = text.charCodeAt(line_end - 1) === 13
  if (!crlf) message.regular = false
  let refusal = readStartLine(message, text.slice(0, crlf ? line_end - 1 : line_end))
  if (refusal === 'junk') return { kind: 'junk', why: 'start line is not SIP' }

  let at = line_end + 1
  let body_at = -1
  const headers = message.headers
  let nameless = false
  while (at < text.length) {
    const lf = text.indexOf('\n', at)
    if (lf < 0) break
    let end = lf
    if (end > at && text.charCodeAt(end - 1) === 13) end--
    else message.regular = false
    if (end === at) {
      body_at = lf + 1
      break
    }
    const first = text.charCodeAt(at)
    if (first === 32 || first === 9) {
      // A folded line continues the previous one (RFC 3261 §7.3.1).
      const last = headers[headers.length - 1]
      if (nameless) message.regular = false
      else if (last) last.value = continued(last.value, valueIn(text, at, end))
      else refusal ??= { status: 400, why: 'continuation without a header' }
    } else {
      const name_end = endOfToken(text, at, end)
      // Only the line itself is searched: a message may have thousands of lines that name nothing.
      const colon = skipBlanks(text, name_end, end)
      nameless = name_end === at || colon === end || text.charCodeAt(colon) !== 58
      // Helpers in home routers break lines. A line that names nothing is nothing that a call needs.
      if (nameless) message.regular = false
      else if (headers.length >= limits.header_count) {
        return { kind: 'refused', message, status: 513, why: 'too many header lines' }
      } else headers.push({ kind: headerKind(text.slice(at, name_end)), value: valueIn(text, colon + 1, end) })
    }
    at = lf + 1
  }
  if (body_at < 0) {
    // No empty line: the datagram is truncated. The request may still be answered.
    refusal ??= { status: 400, why: 'headers do not end' }
    body_at = text.length
  }
  refusal ??= readBody(message, text, body_at)
  refusal ??= checkSingles(message)
  if (refusal) return { kind: 'refused', message, ...refusal }
  return { kind: 'message', message }
}

type Refusal = { status: number; why: string } | undefined

function readStartLine(message: SipMessage, line: string): Refusal | 'junk' {
  if (line.startsWith('SIP/') || line.startsWith('sip/')) {
    // Status-Line = SIP-Version SP Status-Code SP Reason-Phrase
    const code = line.slice(8, 11)
    const status = parseDigits(code, 699)
    if (line.slice(4, 7) !== '2.0' || line[7] !== ' ' || status === undefined || status < 100) return 'junk'
    if (line.length > 11 && line[11] !== ' ') return 'junk'
    message.status = status
    message.reason = line.slice(12)
    return undefined
  }
  const first = line.indexOf(' ')
  if (first <= 0) return 'junk'
  const last = line.lastIndexOf(' ')
  const method = line.slice(0, first)
  if (!isToken(method)) return 'junk'
  const version = line.slice(last + 1)
  message.method = method
  if (last === first) {
    message.uri = line.slice(first + 1)
    return 'junk'
  }
  message.uri = line.slice(first + 1, last)
  if (version !== 'SIP/2.0' && !/^SIP\/\d{1,9}\.\d{1,9}$/i.test(version)) {
    message.uri = message.uri.trim()
    // White space after the version is the most common fault (RFC 4475 §3.1.2.11 allows us to reject it).
    return line.includes('SIP/') ? { status: 400, why: 'request line is malformed' } : 'junk'
  }
  if (version.toUpperCase() !== 'SIP/2.0') return { status: 505, why: 'version is not SIP/2.0' }
  for (let i = 0; i < message.uri.length; i++) {
    const c = message.uri.charCodeAt(i)
    if (c <= 32 || c === 60 || c === 62 || c === 34)
      return { status: 400, why: 'request-URI holds a forbidden character' }
  }
  return undefined
}

function readBody(message: SipMessage, text: string, at: number): Refusal {
  let length: number | undefined
  for (const h of message.headers) {
    if (h.kind.id !== 'content-length') continue
    const n = parseDigits(h.value, Number.MAX_SAFE_INTEGER)
    if (n === undefined) return { status: 400, why: 'Content-Length is not a number' }
    if (length !== undefined && length !== n) return { status: 400, why: 'Content-Length is given twice' }
    length = n
  }
  const there = text.length - at
  if (length === undefined || length === there) {
    message.body = there === 0 ? '' : text.slice(at)
    return undefined
  }
  if (length > there) {
    message.body = text.slice(at)
    return { status: 400, why: 'body is shorter than Content-Length' }
  }
  // RFC 3261 §18.3: ignore bytes beyond Content-Length.
  message.body = text.slice(at, at + length)
  message.raw = text.slice(0, at + length)
  return undefined
}

// Headers whose repetition makes a message ambiguous (RFC 4475 §3.3.8).
function checkSingles({ headers }: SipMessage): Refusal {
  let seen = 0
  for (const { kind } of headers) {
    const bit = singleBit(kind.id)
    if ((seen & bit) !== 0) return { status: 400, why: 'a single header is repeated' }
    seen |= bit
  }
  return undefined
}

/** A comparison with each takes a fraction of a look into a set, and each header of each message comes here. */
function singleBit(id: string): number {
  switch (id) {
    case 'from':
      return 1
    case 'to':
      return 2
    case 'call-id':
      return 4
    case 'cseq':
      return 8
    case 'max-forwards':
      return 16
    default:
      return 0
  }
}

/**
 * Checks the headers that RFC 3261 §8.1.1 requires in every request, and Max-Forwards, Expires and Contact if present.
 * Returns the first fault.
 */
export function checkRequest(message: SipMessage): Refusal {
  const to = message.get('to')
  const from = message.get('from')
  const call_id = message.get('call-id')
  if (from === undefined || to === undefined) return { status: 400, why: 'From or To is missing' }
  if (call_id === undefined || call_id === '' || hasSpace(call_id)) return { status: 400, why: 'Call-ID is missing' }
  if (call_id.length > LONGEST_CALL_ID) return { status: 400, why: 'Call-ID is too long' }
  const { cseq, from: from_address, to: to_address } = message
  if (cseq.method === '') return { status: 400, why: 'CSeq is missing or malformed' }
  if (cseq.method !== message.method) return { status: 400, why: 'CSeq names another method' }
  if (!from_address || !to_address) return { status: 400, why: 'From or To is malformed' }
  if (!parseUri(from_address.uri) || !parseUri(to_address.uri)) return { status: 400, why: 'From or To holds no URI' }
  const via = message.via
  if (!via) return { status: 400, why: 'Via is malformed' }
  if (message.has('max-forwards')) {
    const hops = message.max_forwards
    // RFC 3261 §20.22: 0 to 255.
    if (hops === undefined || hops > 255) return { status: 400, why: 'Max-Forwards is out of range' }
  }
  const expires = message.get('expires')
  if (expires !== undefined && message.method === 'REGISTER' && parseDigits(expires, 2 ** 53) === undefined) {
    return { status: 400, why: 'Expires is not a number' }
  }
  const contacts = message.lines('contact')
  for (const value of contacts) {
    if (value === '*') continue
    for (const item of splitList(value)) {
      const address = item === contacts[0] ? message.contact : parseNameAddress(item)
      if (!address || !parseUri(address.uri)) return { status: 400, why: 'Contact is malformed' }
    }
  }
  return undefined
}

/** Checks that a response can be matched to its request. Malformed responses are dropped (RFC 3261 §18.1.2). */
export function checkResponse(message: SipMessage): string | undefined {
  if (!message.via) return 'Via is missing or malformed'
  if (message.cseq.method === '') return 'CSeq is missing or malformed'
  if (message.call_id === '' || !message.has('from') || !message.has('to')) return 'a dialog header is missing'
  if (message.branch === '') return 'branch is missing'
  return undefined
}

/** Reports whether a malformed request has a Via to which a response can be sent. */
export function canBeAnswered(message: SipMessage): boolean {
  const first = message.get('via')
  return message.is_request && first !== undefined && parseVia(splitList(first)[0] ?? '') !== undefined
}

/** Joins the lines of a value. To trim the whole for each line would copy a long value as often as it has lines. */
function continued(value: string, line: string): string {
  if (value === '') return line
  return line === '' ? value : `${value} ${line}`
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from
  while (at < end && (text.charCodeAt(at) === 32 || text.charCodeAt(at) === 9)) at++
  return at
}

function hasSpace(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) <= 32) return true
  return false
}
