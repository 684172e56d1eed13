import { isUtf8 } from 'node:buffer'
import { parseCSeq } from '../../../core/domain/sip/values.ts'
import { type HeaderKind, headerId, headerKind, reasonPhrase, spellingOf } from './headers.ts'
import { type NameAddress, parseDigits, parseNameAddress, parseVia, splitList, tagOf, type Via } from './uri.ts'

// SIP messages, received or to be sent. All text is a byte string: one character is one byte on the wire (latin1). So
// lengths are byte counts, and UTF-8 or binary bodies pass unchanged. `textOf` and `bytesOf` convert at the boundaries.

const CRLF = '\r\n'

/** Converts ordinary text to a byte string. */
export function bytesOf(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return Buffer.from(text, 'utf8').toString('latin1')
  }
  return text
}

/** Converts a byte string to ordinary text. */
export function decodedText(bytes: string): string {
  for (let i = 0; i < bytes.length; i++) {
    if (bytes.charCodeAt(i) > 127) return Buffer.from(bytes, 'latin1').toString('utf8')
  }
  return bytes
}

/**
 * Returns a message, a byte string, whose header lines are UTF-8. RFC 3261 §7.3.1 asks for it, but older devices write
 * names in Latin-1 ("José"). Lines that cannot be Latin-1 text, and the body, stay as they are.
 */
export function headInUtf8(message: string): string {
  const end = message.indexOf(CRLF + CRLF)
  const head = end < 0 ? message : message.slice(0, end)
  if (!/[^\0-\x7f]/.test(head) || isUtf8(Buffer.from(head, 'latin1'))) return message
  const lines = head.split(CRLF).map(line => {
    const latin1 = !/[\x80-\x9f]/.test(line) && !isUtf8(Buffer.from(line, 'latin1'))
    return latin1 ? bytesOf(line) : line
  })
  return lines.join(CRLF) + message.slice(head.length)
}

/** One header field. The value has no surrounding white space, and each fold is replaced by one space. */
interface Header {
  readonly kind: HeaderKind
  value: string
}

/** A received message. Header values are parsed lazily and cached. */
export class SipMessage {
  /** Empty in a response. */
  method = ''
  uri = ''
  /** 0 in a request. */
  status = 0
  reason = ''
  body = ''
  /** The message as it arrived, without leading line breaks and without bytes after the body. */
  raw = ''
  /** Number of bytes on the wire. */
  bytes = 0
  /** False when lines end in a bare LF or have no name. Such a text must not be forwarded as it is. */
  regular = true
  readonly headers: Header[] = []
  #cseq: { seq: number; method: string } | undefined
  #via: Via | undefined
  #from: NameAddress | undefined
  #to: NameAddress | undefined
  #contact: NameAddress | undefined
  #from_tag: string | undefined
  #to_tag: string | undefined

  get is_request(): boolean {
    return this.status === 0
  }

  /** The first value of a header, named by its lower-case long name. */
  get(id: string): string | undefined {
    for (const h of this.headers) if (h.kind.id === id) return h.value
    return undefined
  }

  has(id: string): boolean {
    return this.get(id) !== undefined
  }

  /** All values of a header, one per line as received. */
  lines(id: string): string[] {
    const out: string[] = []
    for (const h of this.headers) if (h.kind.id === id) out.push(h.value)
    return out
  }

  /** All values of a list header, split at commas. */
  list(id: string): string[] {
    const out: string[] = []
    for (const h of this.headers) if (h.kind.id === id) out.push(...splitList(h.value))
    return out
  }

  /** Whether a list header contains `token` (lower case). The comparison ignores the header's case. */
  lists(id: string, token: string): boolean {
    for (const h of this.headers) {
      if (h.kind.id !== id) continue
      for (const item of splitList(h.value)) if (item.toLowerCase() === token) return true
    }
    return false
  }

  get call_id(): string {
    return this.get('call-id') ?? ''
  }

  /** The From address; undefined when absent or malformed. */
  get from(): NameAddress | undefined {
    this.#from ??= parseNameAddress(this.get('from') ?? '')
    return this.#from
  }

  /** The To address; undefined when absent or malformed. */
  get to(): NameAddress | undefined {
    this.#to ??= parseNameAddress(this.get('to') ?? '')
    return this.#to
  }

  get from_tag(): string {
    this.#from_tag ??= this.#from ? (this.#from.params.get('tag') ?? '') : tagOf(this.get('from') ?? '')
    return this.#from_tag
  }

  get to_tag(): string {
    this.#to_tag ??= this.#to ? (this.#to.params.get('tag') ?? '') : tagOf(this.get('to') ?? '')
    return this.#to_tag
  }

  /** The CSeq number and method; 0 and '' when malformed. */
  get cseq(): { seq: number; method: string } {
    this.#cseq ??= parseCSeq(this.get('cseq')) ?? { seq: 0, method: '' }
    return this.#cseq
  }

  /** The topmost Via. */
  get via(): Via | undefined {
    if (!this.#via) {
      const first = this.get('via')
      if (first !== undefined) this.#via = parseVia(splitList(first)[0] ?? '')
    }
    return this.#via
  }

  get branch(): string {
    return this.via?.params.get('branch') ?? ''
  }

  /** The first Contact address; undefined when absent or malformed. */
  get contact(): NameAddress | undefined {
    if (!this.#contact) {
      const value = this.list('contact')[0]
      if (value !== undefined) this.#contact = parseNameAddress(value)
    }
    return this.#contact
  }

  get max_forwards(): number | undefined {
    const value = this.get('max-forwards')
    return value === undefined ? undefined : parseDigits(value, 2 ** 31)
  }

  /** Replaces the first line of a header in place, or appends it. */
  set(id: string, value: string): void {
    for (const h of this.headers) {
      if (h.kind.id === id) {
        h.value = value
        return
      }
    }
    this.headers.push({ kind: headerKind(id), value })
  }
}

/** A message to be sent. Headers are ordered by rank (RFC 3261 §7.3.1); equal ranks keep the order of addition. */
export class Draft {
  readonly headers: { rank: number; id: string; name: string; value: string }[] = []
  start_line: string
  body = ''

  constructor(start_line: string) {
    this.start_line = start_line
  }

  static request(method: string, uri: string): Draft {
    return new Draft(`${method} ${uri} SIP/2.0`)
  }

  static response(status: number, reason?: string): Draft {
    return new Draft(`SIP/2.0 ${status} ${reason === undefined || reason === '' ? reasonPhrase(status) : reason}`)
  }

  /** Adds a header line, with its name in any spelling. CR, LF and NUL in the value become spaces. */
  add(name: string, value: string): this {
    const kind = headerKind(name)
    this.headers.push({ rank: kind.rank, id: kind.id, name: spellingOf(kind), value: oneLine(value) })
    return this
  }

  /** Adds a received header, with `other` in place of its value. `other` must be one line. */
  copy({ kind, value }: Header, other = value): this {
    this.headers.push({ rank: kind.rank, id: kind.id, name: spellingOf(kind), value: other })
    return this
  }

  get(id: string): string | undefined {
    for (const h of this.headers) if (h.id === id) return h.value
    return undefined
  }

  set(name: string, value: string): this {
    const id = headerId(name)
    for (const h of this.headers) {
      if (h.id === id) {
        h.value = oneLine(value)
        return this
      }
    }
    return this.add(name, value)
  }

  /** Returns the bytes for the wire. Sets Content-Length. */
  serialize(): string {
    this.set('Content-Length', String(this.body.length))
    const headers = this.headers
    sortByRank(headers)
    let out = this.start_line + CRLF
    for (let i = 0; i < headers.length; i++) {
      const h = headers[i]
      if (h) out += `${h.name}: ${h.value}${CRLF}`
    }
    return out + CRLF + this.body
  }
}

/** Sorts a dozen headers that are nearly in order. To call a comparison for each step takes longer than the steps. */
function sortByRank<Ranked extends { readonly rank: number }>(headers: Ranked[]): void {
  for (let i = 1; i < headers.length; i++) {
    const header = headers[i] as Ranked
    let at = i
    for (let before = headers[at - 1]; before && before.rank > header.rank; before = headers[at - 1]) {
      headers[at] = before
      at--
    }
    headers[at] = header
  }
}

function oneLine(value: string): string {
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i)
    if (c === 13 || c === 10 || c === 0) return value.replaceAll(/[\r\n\0]+/g, ' ').trim()
  }
  return value
}

/**
 * Returns the text of a received message with `via` as its topmost Via (RFC 3581 §4, RFC 3261 §18.2.1). All other bytes
 * are unchanged. A message that is not regular is rebuilt from its headers.
 */
export function withTopVia(message: SipMessage, via: string): string {
  const raw = message.raw
  if (!message.regular) return rewrite(message, via)
  let at = raw.indexOf(CRLF) + 2
  while (at > 1 && at < raw.length) {
    const end = raw.indexOf(CRLF, at)
    if (end <= at) break
    const c = raw.charCodeAt(at)
    if (c === 86 || c === 118) {
      const colon = raw.indexOf(':', at)
      if (colon > 0 && colon < end && headerId(raw.slice(at, colon).trim()) === 'via') {
        let stop = end
        // A folded Via is replaced together with its continuation lines.
        while (raw.charCodeAt(stop + 2) === 32 || raw.charCodeAt(stop + 2) === 9) {
          const next = raw.indexOf(CRLF, stop + 2)
          if (next < 0) break
          stop = next
        }
        return `${raw.slice(0, at)}Via: ${via}${raw.slice(stop)}`
      }
    }
    at = end + 2
  }
  return raw
}

function rewrite(message: SipMessage, via: string): string {
  let out = raw1(message) + CRLF
  let seen = false
  for (const h of message.headers) {
    const value = h.kind.id === 'via' && !seen ? via : h.value
    if (h.kind.id === 'via') seen = true
    out += `${spellingOf(h.kind)}: ${oneLine(value)}${CRLF}`
  }
  return out + CRLF + message.body
}

function raw1(message: SipMessage): string {
  return message.is_request ? `${message.method} ${message.uri} SIP/2.0` : `SIP/2.0 ${message.status} ${message.reason}`
}

/**
 * Drafts a response with the Via, From, To, Call-ID and CSeq of the request (RFC 3261 §8.2.6.2). Adds `to_tag` if the
 * request has no To tag and the response is not a 100.
 */
export function draftResponse(request: SipMessage, status: number, to_tag: string, reason?: string): Draft {
  const draft = Draft.response(status, reason)
  for (const h of request.headers) {
    switch (h.kind.id) {
      case 'via':
      case 'from':
      case 'call-id':
      case 'cseq':
        draft.copy(h)
        break
      case 'to':
        draft.copy(h, to_tag === '' || request.to_tag !== '' || status === 100 ? h.value : `${h.value};tag=${to_tag}`)
        break
      case 'timestamp':
        // RFC 3261 §8.2.6.1: a 100 copies it.
        if (status === 100) draft.copy(h)
        break
    }
  }
  return draft
}
