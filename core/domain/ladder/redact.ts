import { mediaType, readBody, SDP_TYPE } from '../sip/body.ts'
import { maskCards } from './cards.ts'
import { fieldReader } from './field.ts'

/** Folded lines are parts of the value (RFC 3261 §7.3.1). */
const SECRET_HEADERS = /^((?:proxy-)?authorization|identity)[ \t]*:(.*(?:(?:\r\n?|\n)[ \t].*)*)/gim
const DIGEST_SECRETS = /\b(response|nonce|cnonce|opaque)[ \t]*=[ \t]*(?:"[^"]*"|[^\s",]+)/gi
/** Matches SDES keys (RFC 4568 §6.1) and DTMF keys in INFO bodies, which may be card numbers. */
const SDES_KEYS = /^(a=crypto:\d+[ \t]+\S+[ \t]+)inline:\S+/gim
const INFO_KEYS = /^([ \t]*Signal[ \t]*=).+$/gim
/** The beginning of each of these lines. Most messages have none, and one look takes a quarter of the time of four. */
const SECRET = /^(?:(?:proxy-)?authorization|identity|a=crypto|[ \t]*signal[ \t]*=)/im
const contentType = fieldReader('content-type', 'c')
/** The type of a body that consists of the key only. */
const BARE_KEYS = 'application/dtmf'

/** Removes digest responses, SRTP keys and typed keys from a SIP message. */
export function redactSip(text: string): string {
  const body_at = headEnd(text)
  const head = body_at === -1 ? text : text.slice(0, body_at)
  const body = body_at === -1 ? '' : text.slice(body_at)
  const kept = redactBody(head, body)
  return redactLines(kept === body ? text : head + kept)
}

/** Returns the position of the line break before the empty line; -1 without one. */
function headEnd(text: string): number {
  const [one, other] = [text.indexOf('\n\r\n'), text.indexOf('\n\n')]
  const at = one < 0 || other < 0 ? Math.max(one, other) : Math.min(one, other)
  return at > 0 && text.charCodeAt(at - 1) === 13 ? at - 1 : at
}

/** Redacts a body. Numbers in headers are those of the call, and in SDP session ids. */
function redactBody(head: string, body: string): string {
  if (body.length < 5) return body
  const given = contentType(head) ?? ''
  const type = mediaType(given)
  if (type === SDP_TYPE) return body
  if (type !== BARE_KEYS && !type.startsWith('multipart/')) return maskCards(body)
  const { parts } = readBody(body.replace(/^\r?\n\r?\n/, ''), { type: given, disposition: null, encoding: null })
  return parts.some(part => part.type === BARE_KEYS) ? body.replace(/[^\r\n]+/g, '…') : maskCards(body)
}

function redactLines(text: string): string {
  if (!SECRET.test(text)) return text
  return text
    .replace(SECRET_HEADERS, (_line, name: string, value: string) =>
      /^\s*digest\b/i.test(value) ? `${name}:${value.replace(DIGEST_SECRETS, '$1="…"')}` : `${name}: …`,
    )
    .replace(SDES_KEYS, '$1inline:…')
    .replace(INFO_KEYS, '$1…')
}
