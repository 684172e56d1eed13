import { mediaType, readBody, SDP_TYPE } from '../sip/body.ts'
import { maskCards } from './cards.ts'
import { fieldReader } from './field.ts'

const SECRET_HEADERS = /^((?:proxy-)?authorization|identity)[ \t]*:(.*)$/gim
const DIGEST_SECRETS = /\b(response|nonce|cnonce|opaque)="[^"]*"/gi
/** Matches SDES keys (RFC 4568 §6.1) and DTMF keys in INFO bodies, which may be card numbers. */
const SDES_KEYS = /^(a=crypto:\d+ \S+ )inline:\S+/gim
const INFO_KEYS = /^(Signal=).+$/gim
const contentType = fieldReader('content-type', 'c')
/** The type of a body that consists of the key only. */
const BARE_KEYS = 'application/dtmf'

/** Removes digest responses, SRTP keys and typed keys from a SIP message. */
export function redactSip(text: string): string {
  const body_at = text.search(/\r?\n\r?\n/)
  const head = body_at === -1 ? text : text.slice(0, body_at)
  const body = body_at === -1 ? '' : text.slice(body_at)
  return redactLines(head + redactBody(head, body))
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
  return text
    .replace(SECRET_HEADERS, (_line, name: string, value: string) =>
      /^\s*digest\b/i.test(value) ? `${name}:${value.replace(DIGEST_SECRETS, '$1="…"')}` : `${name}: …`,
    )
    .replace(SDES_KEYS, '$1inline:…')
    .replace(INFO_KEYS, '$1…')
}
