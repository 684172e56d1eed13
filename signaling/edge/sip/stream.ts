import { headerId } from './headers.ts'
import { parseDigits } from './uri.ts'

// Splits a byte stream into messages by Content-Length (RFC 3261 §18.3, §7.5). Bytes are held as a byte string. The
// work is linear: each byte of the headers is searched once, however the stream is divided into chunks.

export type StreamItem =
  | { readonly kind: 'message'; readonly text: string }
  /** A double CRLF between messages: the peer expects a single CRLF in return (RFC 5626 §3.5.1). */
  | { readonly kind: 'ping' }
  /** The stream can no longer be framed. `text` holds the part of the message that was read. */
  | { readonly kind: 'broken'; readonly text: string; readonly status: 400 | 413 | 513; readonly why: string }

export class StreamFramer {
  readonly #max_bytes: number
  #buffer = ''
  /** Where the search for the end of the headers continues. */
  #searched = 0
  /** The last bytes before the newest chunk, so that the search need not join all chunks each time. */
  #tail = ''
  #fresh = ''
  /** The total length of the current message once its headers are complete; 0 before. */
  #wanted = 0
  #dead = false

  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes
  }

  /** Bytes of an incomplete message. A line break between messages does not begin one (RFC 3261 §7.5). */
  get pending(): number {
    const { length } = this.#buffer
    // To look at the text joins all its chunks.
    return length <= 3 && /^[\r\n]*$/.test(this.#buffer) ? 0 : length
  }

  push(chunk: string): StreamItem[] {
    const out: StreamItem[] = []
    if (this.#dead) return out
    this.#fresh = chunk
    this.#buffer = this.#buffer === '' ? chunk : this.#buffer + chunk
    for (;;) {
      const item = this.#next()
      if (!item) break
      out.push(item)
      if (item.kind === 'broken') {
        this.#dead = true
        this.#buffer = ''
        break
      }
    }
    return out
  }

  #next(): StreamItem | undefined {
    if (this.#wanted === 0) {
      if (this.#searched === 0) {
        const ping = this.#skipBreaks()
        if (ping === 'wait') return undefined
        if (ping) return ping
      }
      if (this.#buffer === '') return undefined
      const end = this.#headerEnd()
      if (end < 0) {
        if (this.#buffer.length <= this.#max_bytes) return undefined
        return { kind: 'broken', text: this.#buffer, status: 513, why: 'headers exceed the limit' }
      }
      const length = contentLength(this.#buffer.slice(0, end))
      if (length === undefined) {
        return { kind: 'broken', text: this.#buffer.slice(0, end), status: 400, why: 'no usable Content-Length' }
      }
      this.#wanted = end + length
      if (this.#wanted > this.#max_bytes) {
        const status = end > this.#max_bytes ? 513 : 413
        return { kind: 'broken', text: this.#buffer.slice(0, end), status, why: 'message exceeds the limit' }
      }
    }
    if (this.#buffer.length < this.#wanted) return undefined
    const text = this.#buffer.slice(0, this.#wanted)
    this.#buffer = this.#buffer.slice(this.#wanted)
    this.#wanted = 0
    this.#searched = 0
    return { kind: 'message', text }
  }

  // Line breaks between messages are skipped, but two in a row are a keep-alive.
  #skipBreaks(): StreamItem | 'wait' | undefined {
    let n = 0
    while (n < this.#buffer.length) {
      const c = this.#buffer.charCodeAt(n)
      if (c !== 13 && c !== 10) break
      n++
    }
    if (n === 0) return undefined
    if (n < 4) {
      if (n === this.#buffer.length) return 'wait'
      this.#buffer = this.#buffer.slice(n)
      this.#searched = 0
      return undefined
    }
    this.#buffer = this.#buffer.slice(4)
    this.#searched = 0
    return { kind: 'ping' }
  }

  #headerEnd(): number {
    const window = this.#searched === 0 ? this.#buffer : this.#tail + this.#fresh
    const at = window.indexOf('\r\n\r\n')
    const base = this.#buffer.length - window.length
    this.#searched = this.#buffer.length
    this.#tail = window.slice(-3)
    return at < 0 ? -1 : base + at + 4
  }
}

// On a stream, Content-Length must be present and a number (RFC 3261 §20.14). Repetitions must agree.
function contentLength(head: string): number | undefined {
  let found: number | undefined
  let at = head.indexOf('\n') + 1
  while (at < head.length) {
    const end = head.indexOf('\n', at)
    if (end < 0) break
    const c = head.charCodeAt(at)
    if (c === 67 || c === 99 || c === 76 || c === 108) {
      // Only the line itself is searched: a head may have thousands of lines without a colon.
      const colon = at + head.slice(at, end).indexOf(':')
      if (colon > at && headerId(head.slice(at, colon).trim()) === 'content-length') {
        const n = parseDigits(head.slice(colon + 1, end).trim(), Number.MAX_SAFE_INTEGER)
        if (n === undefined || (found !== undefined && found !== n)) return undefined
        found = n
      }
    }
    at = end + 1
  }
  return found
}
