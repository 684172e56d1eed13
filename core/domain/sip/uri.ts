import { parseAddress } from '../identity/address.ts'

// Parses URIs and the address forms around them (RFC 3261 §19, §20, §25.1) in one pass over the text. No regular
// expression runs on a stranger's bytes. Text is a byte string at the edge and ordinary text elsewhere, so characters
// above 127 pass unchanged.

/** A SIP or SIPS URI, or a URI of another scheme. `opaque` holds everything after the colon. */
export interface SipUri {
  readonly scheme: string
  /** As written, with escapes. */
  readonly user: string | undefined
  readonly password: string | undefined
  /** IPv6 references have no brackets. */
  readonly host: string
  readonly port: number | undefined
  /** Names are in lower case; a flag has the value ''. */
  readonly params: ReadonlyMap<string, string>
  readonly headers: string | undefined
  readonly opaque: string
}

/** A From, To, Contact or Route value: `"display" <uri>;params` or the bare form. */
export interface NameAddress {
  /** The display name without quotes and escapes; undefined when there is none. */
  readonly name: string | undefined
  readonly uri: string
  readonly params: ReadonlyMap<string, string>
}

/** One Via value (RFC 3261 §20.42). */
export interface Via {
  /** In lower case: udp, tcp, tls, ws, wss ... */
  readonly transport: string
  readonly host: string
  readonly port: number | undefined
  readonly params: ReadonlyMap<string, string>
}

const NO_PARAMS: ReadonlyMap<string, string> = new Map()

/** Parses a URI; undefined when malformed. */
export function parseUri(text: string): SipUri | undefined {
  const colon = text.indexOf(':')
  if (colon <= 0) return undefined
  const scheme = text.slice(0, colon).toLowerCase()
  if (!isScheme(scheme)) return undefined
  const rest = text.slice(colon + 1)
  if (rest.length === 0 || hasForbidden(rest)) return undefined
  if (scheme !== 'sip' && scheme !== 'sips') {
    const hash = rest.indexOf(';')
    return {
      scheme,
      user: undefined,
      password: undefined,
      host: '',
      port: undefined,
      params: hash < 0 ? NO_PARAMS : (readParams(rest, hash) ?? NO_PARAMS),
      headers: undefined,
      opaque: rest,
    }
  }
  // Only the last '@' before the host can end the user part: a user may hold ';' and '?' but not an unescaped '@'.
  const at = rest.indexOf('@')
  let user: string | undefined
  let password: string | undefined
  let at_host = 0
  if (at >= 0) {
    const info = rest.slice(0, at)
    if (info.length === 0 || !escapesAreWhole(info)) return undefined
    const split = info.indexOf(':')
    user = split < 0 ? info : info.slice(0, split)
    password = split < 0 ? undefined : info.slice(split + 1)
    if (user.length === 0) return undefined
    at_host = at + 1
  }
  const question = rest.indexOf('?', at_host)
  const headers = question < 0 ? undefined : rest.slice(question + 1)
  const main_end = question < 0 ? rest.length : question
  const semi = rest.indexOf(';', at_host)
  const host_end = semi < 0 || semi > main_end ? main_end : semi
  const hostport = parseHostPort(rest.slice(at_host, host_end))
  if (!hostport) return undefined
  const params = host_end < main_end ? readParams(rest.slice(0, main_end), host_end) : NO_PARAMS
  if (!params) return undefined
  return { scheme, user, password, host: hostport.host, port: hostport.port, params, headers, opaque: rest }
}

/** Parses `host`, `host:port`, `[v6]` or `[v6]:port`; undefined when malformed. */
function parseHostPort(text: string): { host: string; port: number | undefined } | undefined {
  let host: string
  let after: string
  if (text.startsWith('[')) {
    const close = text.indexOf(']')
    if (close < 2) return undefined
    host = text.slice(1, close)
    after = text.slice(close + 1)
    if (!host.includes(':') || parseAddress(host) === null) return undefined
  } else {
    const colon = text.indexOf(':')
    host = colon < 0 ? text : text.slice(0, colon)
    after = colon < 0 ? '' : text.slice(colon)
    if (host.length === 0 || host.length > 255) return undefined
    for (let i = 0; i < host.length; i++) {
      const c = host.charCodeAt(i)
      if (!(isAlnum(c) || c === 45 || c === 46 || c === 95)) return undefined
    }
  }
  if (after === '') return { host, port: undefined }
  if (!after.startsWith(':')) return undefined
  const port = parseDigits(after.slice(1), 65_535)
  return port === undefined ? undefined : { host, port }
}

/** Parses a decimal number of up to `max`; undefined otherwise. */
export function parseDigits(text: string, max: number): number | undefined {
  if (text.length === 0 || text.length > 20) return undefined
  let n = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i) - 48
    if (c < 0 || c > 9) return undefined
    n = n * 10 + c
  }
  return n > max ? undefined : n
}

/**
 * Parses `"name" <uri>;params`, `name <uri>;params` or `uri;params`; undefined when malformed. An unquoted name may
 * hold any character that cannot end it, such as `@` or UTF-8, though RFC 3261 §25.1 allows only tokens.
 */
export function parseNameAddress(text: string): NameAddress | undefined {
  const s = text.trim()
  if (s.startsWith('"')) {
    const close = quoteEnd(s, 0)
    if (close < 0) return undefined
    const open = skipSpace(s, close + 1)
    if (s.charCodeAt(open) === 60) return addressFrom(s, unescaped(s.slice(1, close)), open)
    // Quotes in the name that are not escaped, such as `""Ada""`: the name ends with the one before the address.
    const bracket = bracketOutsideQuotes(s, close + 1)
    const end = bracket < 0 ? -1 : s.slice(0, bracket).trimEnd().length - 1
    if (end <= close || s.charCodeAt(end) !== 34) return undefined
    return addressFrom(s, withoutOuterQuotes(unescaped(s.slice(1, end))), bracket)
  }
  const open = s.indexOf('<')
  // Bare form: parameters after the first ';' belong to the header, and the URI has no comma or '?' (RFC 3261 §20).
  const semi = s.indexOf(';')
  if (open >= 0 && (semi < 0 || open < semi || bracketOutsideQuotes(s, semi) >= 0)) {
    const name = s.slice(0, open).trim()
    for (let i = 0; i < name.length; i++) {
      const c = name.charCodeAt(i)
      // These end the value or begin a quoted string elsewhere, so the name cannot be told from what surrounds it.
      if (c === 34 || c === 44 || c === 59) return undefined
    }
    return addressFrom(s, name, open)
  }
  const uri = (semi < 0 ? s : s.slice(0, semi)).trim()
  if (uri.length === 0 || uri.includes(',') || uri.includes('?')) return undefined
  const params = semi < 0 ? NO_PARAMS : readParams(s, semi)
  return params ? { name: undefined, uri, params } : undefined
}

function addressFrom(s: string, given: string, open: number): NameAddress | undefined {
  const close = s.indexOf('>', open)
  if (close < 0) return undefined
  const name = given.trim() === '' ? undefined : given
  const uri = s.slice(open + 1, close).trim()
  const rest = skipSpace(s, close + 1)
  if (rest === s.length) return uri === '' ? undefined : { name, uri, params: NO_PARAMS }
  if (s.charCodeAt(rest) !== 59 || uri === '') return undefined
  const params = readParams(s, rest)
  return params ? { name, uri, params } : undefined
}

function bracketOutsideQuotes(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 60) return i
    if (c === 34) {
      i = quoteEnd(text, i)
      if (i < 0) return -1
    }
  }
  return -1
}

/** Removes one more pair of quotes, where both are there. */
const withoutOuterQuotes = (name: string): string =>
  name.length > 1 && name.startsWith('"') && name.endsWith('"') ? name.slice(1, -1) : name

/** Removes the backslashes of quoted pairs (RFC 3261 §25.1). */
function unescaped(quoted: string): string {
  if (!quoted.includes('\\')) return quoted
  let out = ''
  for (let i = 0; i < quoted.length; i++) {
    if (quoted.charCodeAt(i) === 92) i++
    out += quoted.charAt(i)
  }
  return out
}

/** Returns a value without the quotes and escapes of a quoted string; a token unchanged. */
export const unquoted = (value: string): string =>
  value.startsWith('"') && value.endsWith('"') && value.length > 1 ? unescaped(value.slice(1, -1)) : value

/** Parses a Via value; undefined when malformed. White space is allowed around '/' and ':' (RFC 4475 §3.1.1.1). */
export function parseVia(text: string): Via | undefined {
  const s = text.trim()
  const slash1 = s.indexOf('/')
  const slash2 = slash1 < 0 ? -1 : s.indexOf('/', slash1 + 1)
  if (slash2 < 0) return undefined
  // Accepts any version: the refusal of a request of another version needs its Via (RFC 4475 §3.1.2.16).
  if (s.slice(0, slash1).trim().toUpperCase() !== 'SIP' || slash2 - slash1 < 2) return undefined
  let i = skipSpace(s, slash2 + 1)
  const t = i
  while (i < s.length && !isSpace(s.charCodeAt(i)) && s.charCodeAt(i) !== 59) i++
  const transport = s.slice(t, i).toLowerCase()
  if (transport === '') return undefined
  i = skipSpace(s, i)
  const semi = s.indexOf(';', i)
  const sent_by = removeSpace(s.slice(i, semi < 0 ? s.length : semi))
  const hostport = parseHostPort(sent_by)
  if (!hostport) return undefined
  const params = semi < 0 ? NO_PARAMS : readParams(s, semi)
  return params ? { transport, host: hostport.host, port: hostport.port, params } : undefined
}

/**
 * Returns the parameters of a value like `name;a=b`, after the first ';' outside quotes and angle brackets. Text that
 * is no parameter, such as the rest of `text=Normal clearing`, is left out.
 */
export function valueParams(text: string): ReadonlyMap<string, string> {
  const semi = paramStart(text)
  return semi < 0 ? NO_PARAMS : (readParams(text, semi, true) ?? NO_PARAMS)
}

/** Returns the URI of a value that is an address in angle brackets or a URI alone. */
export const uriIn = (value: string): string =>
  value.includes('<') ? (parseNameAddress(value)?.uri ?? '') : value.trim()

/** Returns the transport that a URI asks for, in lower case: of `sips:` TLS, else its parameter; null without one. */
export function transportOf(uri: string): string | null {
  const parsed = parseUri(uri)
  return parsed?.scheme === 'sips' ? 'tls' : (parsed?.params.get('transport')?.toLowerCase() ?? null)
}

/** Returns the tag of a From or To value; '' when there is none. */
export function tagOf(value: string): string {
  const semi = paramStart(value)
  if (semi < 0) return ''
  return readParams(value, semi)?.get('tag') ?? ''
}

/** Returns the position of the ';' that begins an address's header parameters, or -1. */
function paramStart(text: string): number {
  let i = 0
  let angle = false
  while (i < text.length) {
    const c = text.charCodeAt(i)
    if (c === 34 && !angle) {
      const close = quoteEnd(text, i)
      if (close < 0) return -1
      i = close
    } else if (c === 60) angle = true
    else if (c === 62) angle = false
    else if (c === 59 && !angle) return i
    i++
  }
  return -1
}

/** Splits a list header at commas outside quotes and angle brackets. Omits empty elements. */
export function splitList(text: string): string[] {
  if (!text.includes(',')) {
    const only = text.trim()
    return only === '' ? [] : [only]
  }
  const out: string[] = []
  let start = 0
  let angle = false
  let i = 0
  while (i < text.length) {
    const c = text.charCodeAt(i)
    if (c === 34 && !angle) {
      const close = quoteEnd(text, i)
      if (close < 0) break
      i = close
    } else if (c === 60) angle = true
    else if (c === 62) angle = false
    else if (c === 44 && !angle) {
      const part = text.slice(start, i).trim()
      if (part !== '') out.push(part)
      start = i + 1
    }
    i++
  }
  const last = text.slice(start).trim()
  if (last !== '') out.push(last)
  return out
}

/**
 * Parses `;name=value;flag` from position `at`. The first of equal names wins. What is malformed makes the result
 * undefined, or is left out if `lenient`.
 */
function readParams(text: string, at: number, lenient = false): ReadonlyMap<string, string> | undefined {
  const params = new Map<string, string>()
  let i = at
  while (i < text.length) {
    i = skipSpace(text, i)
    if (i >= text.length) break
    if (text.charCodeAt(i) !== 59) {
      if (!lenient) return undefined
      const next = text.indexOf(';', i)
      if (next < 0) break
      i = next
    }
    i = skipSpace(text, i + 1)
    const n = i
    while (i < text.length) {
      const c = text.charCodeAt(i)
      if (c === 61 || c === 59 || isSpace(c)) break
      i++
    }
    const name = text.slice(n, i).toLowerCase()
    i = skipSpace(text, i)
    let value = ''
    if (text.charCodeAt(i) === 61) {
      i = skipSpace(text, i + 1)
      if (text.charCodeAt(i) === 34) {
        const close = quoteEnd(text, i)
        if (close < 0) return lenient ? params : undefined
        value = text.slice(i, close + 1)
        i = close + 1
      } else {
        const v = i
        while (i < text.length) {
          const c = text.charCodeAt(i)
          if (c === 59 || isSpace(c)) break
          i++
        }
        value = text.slice(v, i)
      }
    }
    if (name !== '' && !params.has(name)) params.set(name, value)
  }
  return params
}

/** Returns the position of the quote that closes the one at `open`, or -1. */
function quoteEnd(text: string, open: number): number {
  for (let i = open + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 92) i++
    else if (c === 34) return i
  }
  return -1
}

function hasForbidden(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c <= 32 || c === 60 || c === 62 || c === 34 || c === 127) return true
  }
  return false
}

function escapesAreWhole(text: string): boolean {
  for (let i = text.indexOf('%'); i >= 0; i = text.indexOf('%', i + 1)) {
    if (!isHex(text.charCodeAt(i + 1)) || !isHex(text.charCodeAt(i + 2))) return false
  }
  return true
}

function isScheme(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (!(isAlnum(c) || (i > 0 && (c === 43 || c === 45 || c === 46)))) return false
  }
  return true
}

function isAlnum(c: number): boolean {
  return (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57)
}

function isHex(c: number): boolean {
  return (c >= 48 && c <= 57) || (c >= 97 && c <= 102) || (c >= 65 && c <= 70)
}

function isSpace(c: number): boolean {
  return c === 32 || c === 9 || c === 13 || c === 10
}

function skipSpace(text: string, from: number): number {
  let i = from
  while (i < text.length && isSpace(text.charCodeAt(i))) i++
  return i
}

function removeSpace(text: string): string {
  let out = ''
  for (let i = 0; i < text.length; i++) if (!isSpace(text.charCodeAt(i))) out += text[i]
  return out
}
