import { maskCards } from './cards.ts'

const SECRET_HEADERS = /^((?:proxy-)?authorization|identity)[ \t]*:(.*)$/gim
const DIGEST_SECRETS = /\b(response|nonce|cnonce|opaque)="[^"]*"/gi
/** SDES keys (RFC 4568 §6.1) and DTMF keys in INFO bodies, which may be card numbers. */
const SDES_KEYS = /^(a=crypto:\d+ \S+ )inline:\S+/gim
const INFO_KEYS = /^(Signal=).+$/gim
/** A body that is the key alone. */
const BARE_KEYS = /^(content-type|c)[ \t]*:[ \t]*application\/dtmf[ \t]*(;|$)/im
const SDP = /^(content-type|c)[ \t]*:[ \t]*application\/sdp/im

/** A SIP message with what must not be kept taken out: digest responses, SRTP keys, typed keys. */
export function redactSip(text: string): string {
  const body_at = text.search(/\r?\n\r?\n/)
  const head = body_at === -1 ? text : text.slice(0, body_at)
  const body = body_at === -1 ? '' : text.slice(body_at)
  return redactLines(head + redactBody(head, body))
}

/** Numbers in headers are those of the call; in SDP they are ids of sessions. */
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
