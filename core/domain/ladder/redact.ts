const SECRET_HEADERS = /^((?:proxy-)?authorization|identity)[ \t]*:(.*)$/gim
const DIGEST_SECRETS = /\b(response|nonce|cnonce|opaque)="[^"]*"/gi
/** SDES keys (RFC 4568 §6.1) and DTMF keys in INFO bodies, which may be card numbers. */
const SDES_KEYS = /^(a=crypto:\d+ \S+ )inline:\S+/gim
const INFO_KEYS = /^(Signal=).+$/gim

/** A SIP message with what must not be kept taken out: digest responses, SRTP keys, typed keys. */
export function redactSip(text: string): string {
  return text
    .replace(SECRET_HEADERS, (_line, name: string, value: string) =>
      /^\s*digest\b/i.test(value) ? `${name}:${value.replace(DIGEST_SECRETS, '$1="…"')}` : `${name}: …`,
    )
    .replace(SDES_KEYS, '$1inline:…')
    .replace(INFO_KEYS, '$1…')
}
