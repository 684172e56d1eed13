import { PORTS_REFUSED_BY_BROWSERS } from '../network/browser-ports.ts'

/** The parsed target of an HTTP request: what to connect to, to send and to sign. */
export interface HttpTarget {
  readonly scheme: 'http' | 'https'
  /** The host, normalized by the URL standard (`2130706433` is `127.0.0.1`), IPv6 without brackets. */
  readonly hostname: string
  readonly port: number
  /** `scheme://host[:port]`, without the scheme's default port, as in the Host header. */
  readonly origin: string
  /** Path and query exactly as sent. */
  readonly path: string
  /** `origin + path`, without user info and fragment. This is signed and shown. */
  readonly url: string
  /** Without `#`; never sent. */
  readonly fragment: string
  /** Decoded user info; never part of `url`. */
  readonly credentials: { readonly username: string; readonly password: string } | null
}

type ParsedTarget = { readonly ok: true; readonly target: HttpTarget } | { readonly ok: false; readonly detail: string }

/** The longest URL that is requested, including our parameters. */
export const MAX_URL_CHARACTERS = 16 * 1024

/**
 * Parses an http(s) URL; a relative one against `base`. The path is encoded as every HTTP client does. The query stays
 * as written, except that invalid characters such as spaces are encoded, because receivers sign what they wrote.
 */
export function parseTarget(text: string, base?: string): ParsedTarget {
  const cleaned = stripped(text)
  if (cleaned.length > MAX_URL_CHARACTERS) return refused(`a URL is at most ${MAX_URL_CHARACTERS} characters`)
  if (!URL.canParse(cleaned, base)) return refused('not a URL')
  const url = new URL(cleaned, base)
  const scheme = url.protocol.slice(0, -1)
  if (scheme !== 'http' && scheme !== 'https') return refused(`scheme ${scheme} is not http or https`)
  if (url.port === '0') return refused('port 0 cannot be requested')
  // A server there could parse a body as requests of its own protocol, and a carrier trusts our address.
  if (PORTS_REFUSED_BY_BROWSERS.has(Number(url.port))) return refused(`port ${url.port} is not for HTTP`)
  const credentials = userInfo(url)
  if (credentials === 'malformed') return refused('the user info is not valid percent-encoding')
  const path = url.pathname + rawQuery(cleaned, base)
  return {
    ok: true,
    target: {
      scheme,
      hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port),
      origin: url.origin,
      path,
      url: url.origin + path,
      fragment: url.hash.slice(1),
      credentials,
    },
  }
}

/** What a refusal says of a field that is no URL which can be requested; null when it is one. */
export function wrongTarget(text: string): string | null {
  const parsed = parseTarget(text)
  return parsed.ok ? null : `is not an absolute http or https URL: ${parsed.detail}`
}

/** Adds parameters to a URL's query. The existing query stays unchanged, and a fragment stays last. */
export function withParameters(url: string, encoded: string): string {
  if (encoded === '') return url
  const { head, fragment } = splitFragment(url)
  const glue = !head.includes('?') ? '?' : /[?&]$/.test(head) ? '' : '&'
  return head + glue + encoded + fragment
}

/** Splits a URL at the `#`. */
export function splitFragment(url: string): { readonly head: string; readonly fragment: string } {
  const at = url.indexOf('#')
  return at < 0 ? { head: url, fragment: '' } : { head: url.slice(0, at), fragment: url.slice(at) }
}

const refused = (detail: string): ParsedTarget => ({ ok: false, detail })

/** Removes what the URL standard ignores: controls and spaces at both ends, tabs and line ends anywhere. */
const stripped = (text: string): string => text.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '')

function rawQuery(text: string, base: string | undefined): string {
  const { head } = splitFragment(text)
  const at = head.indexOf('?')
  if (at >= 0) return encodeForWire(head.slice(at))
  // A reference without path and query keeps the query of its base (RFC 3986 §5.2.2).
  return head === '' && base !== undefined ? rawQuery(stripped(base), undefined) : ''
}

const encodeForWire = (query: string): string =>
  query.replace(/[^\x21\x23-\x3b\x3d\x3f-\x7e]+/gu, part =>
    Array.from(new TextEncoder().encode(part), byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )

function userInfo(url: URL): HttpTarget['credentials'] | 'malformed' {
  if (url.username === '' && url.password === '') return null
  try {
    return { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  } catch {
    // decodeURIComponent throws on `%zz`. Without a valid user name the URL cannot be used.
    return 'malformed'
  }
}
