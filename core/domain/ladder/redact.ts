import { maskCards } from './cards.ts'

const SECRET_HEADERS = /^((?:proxy-)?authorization|identity)[ \t]*:(.*)$/gim
const DIGEST_SECRETS = /\b(response|nonce|cnonce|opaque)="[^"]*"/gi
/** Matches SDES keys (RFC 4568 §6.1) and DTMF keys in INFO bodies, which may be card numbers. */
const SDES_KEYS = /^(a=crypto:\d+ \S+ )inline:\S+/gim
const INFO_KEYS = /^(Signal=).+$/gim
/** Matches the type of a body that consists of the key only. */
const BARE_KEYS = /^(content-type|c)[ \t]*:[ \t]*application\/dtmf[ \t]*(;|$)/im
const SDP = /^(content-type|c)[ \t]*:[ \t]*application\/sdp/im

/** Removes digest responses, SRTP keys and typed keys from a SIP message. */
export function redactSip(text: string): string {
  const body_at = text.search(/\r?\n\r?\n/)
  const head = body_at === -1 ? text : text.slice(0, body_at)
  const body = body_at === -1 ? '' : text.slice(body_at)
  return redactLines(head + redactBody(head, body))
}

/** Redacts a body. Numbers in headers are those of the call, and in SDP session ids. */
function redactBody(head: string, body: string): string {
  if (BARE_KEYS.test(head)) return body.replace(/[^\r\n]+/g, '…')
  return SDP.test(head) ? body : maskCards(body)
}

function redactLines(text: string): string {
  return text
    .replace(SECRET_HEADERS, (_line, name: string, value: string) =>
      /^\s*digest\b/i.test(value) ? `${name}:${value.replace(DIGEST_SECRETS, '$1="…"')}` : `${name}: …`,
    )
    .replace(SDES_KEYS, '$1inline:…')
    .replace(INFO_KEYS, '$1…')
}
