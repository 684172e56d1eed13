import { callingCode, parseNumber } from '../numbers/parse.ts'
import { withoutSeparators } from '../numbers/separators.ts'
import { parseNameAddress, parseUri, splitList, unquoted } from './uri.ts'

/**
 * The reader of every address that a peer sends: the request-URI, From, To, Contact, P-Asserted-Identity,
 * Remote-Party-ID, P-Called-Party-ID, Diversion, History-Info, Refer-To and Referred-By. It reads `sip:`, `sips:` and
 * `tel:` URIs and the telephone numbers in them (RFC 3261 §19.1.6, RFC 3966), in one pass and within `MAX_LENGTH`.
 */

export interface SipAddress {
  /** The display name without quotes and escapes; null when there is none. */
  readonly name: string | null
  /** As received, without angle brackets. */
  readonly uri: string
  /** In lower case. */
  readonly scheme: string
  /** The decoded user, or the number of a `tel:` URI, without parameters, password and control characters. */
  readonly user: string
  /** Parameters of the number (RFC 3966 §5, RFC 4694, RFC 4904), decoded; names in lower case. */
  readonly of_number: Parameters
  /** Without the brackets of an IPv6 address; '' for a `tel:` URI. */
  readonly host: string
  readonly port: number | undefined
  /** Parameters of the URI, as received. */
  readonly of_uri: Parameters
  /** Parameters of the header value, as received. */
  readonly params: Parameters
  /** The headers of the URI, decoded; the first 16. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

type Parameters = ReadonlyMap<string, string>

const NONE: Parameters = new Map()
/** Longer values are no addresses. The longest that devices send, with UTF-8 names and tokens, are below 1000. */
const MAX_LENGTH = 2048
const MAX_VALUES = 20
const MAX_HEADERS = 16

/** Reads a value that holds one address, or the first of several; null when there is none. */
export function readAddress(value: string | null | undefined): SipAddress | null {
  if (value === null || value === undefined || value.length === 0) return null
  return value.includes(',') ? (readAddresses(value)[0] ?? null) : readOne(value)
}

/** Reads each address of a list header, in its order; the first 20. Values that are no addresses are left out. */
export function readAddresses(value: string | null | undefined): SipAddress[] {
  const found: SipAddress[] = []
  for (const item of splitList(value ?? '')) {
    const address = readOne(item)
    if (address) found.push(address)
    if (found.length === MAX_VALUES) break
  }
  return found
}

function readOne(value: string): SipAddress | null {
  if (value.length > MAX_LENGTH) return null
  const given = parseNameAddress(value)
  return given ? addressIn(given.uri, given.name ?? null, given.params) : null
}

/** Reads a URI without name and header parameters, such as a request-URI; null when it is malformed. */
export function readUri(text: string): SipAddress | null {
  return text.length > MAX_LENGTH ? null : addressIn(text, null, NONE)
}

function addressIn(text: string, name: string | null, params: Parameters): SipAddress | null {
  const uri = parseUri(text)
  if (!uri) return null
  const { scheme, host, port, opaque } = uri
  const main = scheme === 'sip' || scheme === 'sips' ? (uri.user ?? '') : (opaque.split('?', 1)[0] ?? '')
  const semi = main.indexOf(';')
  const user = decoded(semi < 0 ? main : main.slice(0, semi))
  // Digits are no host name (RFC 1123 §2.1): this peer left the host out.
  const is_number = user === '' && isDigits(host)
  return {
    name,
    uri: text,
    scheme,
    user: is_number ? host : user,
    of_number: semi < 0 ? NONE : numberParameters(main, semi),
    host: is_number ? '' : host,
    port,
    of_uri: uri.params,
    params,
    headers: uri.headers === undefined ? [] : readHeaders(uri.headers),
  }
}

/** Reads `;name=value` after a number. The first of equal names wins (RFC 3966 §3 allows each name once). */
function numberParameters(text: string, from: number): Parameters {
  const found = new Map<string, string>()
  for (const part of text.slice(from + 1).split(';')) {
    const at = part.indexOf('=')
    const name = (at < 0 ? part : part.slice(0, at)).trim().toLowerCase()
    if (name !== '' && !found.has(name)) found.set(name, at < 0 ? '' : decoded(part.slice(at + 1)).trim())
  }
  return found
}

function readHeaders(text: string): [string, string][] {
  const found: [string, string][] = []
  for (const pair of text.split('&', MAX_HEADERS)) {
    const at = pair.indexOf('=')
    const name = decoded(at < 0 ? pair : pair.slice(0, at))
    if (name !== '') found.push([name, at < 0 ? '' : decoded(pair.slice(at + 1))])
  }
  return found
}

/** Returns the host of a URI, an IPv6 address without brackets; '' when there is none. */
export const hostOf = (uri: string): string => parseUri(uri)?.host ?? ''

/** Returns the decoded user of a URI, or its host when it has none. */
export const userOrHost = (uri: string): string => {
  const address = readUri(uri)
  return address?.user || address?.host || ''
}

/** Returns the URI of the first address in a header value; '' when there is none. */
export const uriOf = (value: string | null | undefined): string => readAddress(value)?.uri ?? ''

/** Returns the value of a header of the URI (RFC 3261 §19.1.1); null when there is none. `id` is in lower case. */
export const headerOfUri = ({ headers }: SipAddress, id: string): string | null =>
  headers.find(([name]) => name.toLowerCase() === id)?.[1] ?? null

/** Decodes percent-escapes and drops control characters. Text with malformed escapes is kept as it is. */
function decoded(text: string): string {
  let plain = text
  if (text.includes('%'))
    try {
      plain = decodeURIComponent(text)
    } catch {
      // Escapes of another encoding than UTF-8, or half of one.
    }
  return hasControls(plain) ? plain.replace(/[\u0000-\u001f\u007f]+/g, '') : plain
}

/** What a number in an address stands for. */
export type Dialled =
  /** A number that `parseNumber` reads with the national formats of the platform's country. */
  | { readonly number: string }
  /** A local number of a numbering plan that is not ours (RFC 3966 §5.1.5): calling it would reach somebody else. */
  | { readonly number: null; readonly context: string }

/**
 * Returns the number that an address names, in its context (RFC 3966 §5.1.5). A `phone-context` with a plus is the
 * beginning of the global number. One that repeats the host of the URI is our own plan, which is that of `country`.
 */
export function dialled(address: SipAddress, country: string): Dialled {
  const { of_number, of_uri, host, scheme } = address
  // Some devices write the parameter behind the host.
  const context = of_number.get('phone-context') ?? unquoted(decoded(of_uri.get('phone-context') ?? ''))
  const digits = withoutSeparators(address.user)
  const user = scheme === 'tel' ? digits : address.user
  if (context === '' || digits.startsWith('+') || digits.startsWith('00')) return { number: user }
  if (context.toLowerCase() === host.toLowerCase()) return { number: user }
  if (!context.startsWith('+')) return { number: null, context }
  const prefix = withoutSeparators(context)
  for (const local of digits.startsWith('0') ? [digits, digits.slice(1)] : [digits]) {
    // Telephones write the number as dialled nationally: its leading 0 is not part of the international number.
    const full = `${prefix}${local}`
    if (parseNumber(full, '')) return { number: full }
  }
  // Such as the emergency number 112 in the plan of our own country.
  return prefix === `+${callingCode(country)}` ? { number: user } : { number: null, context }
}

/** Returns the parameters of a number that we take notice of and never send on, as they were written. */
export function unsentParameters({ of_number, of_uri }: SipAddress): string[] {
  if (of_number.size === 0 && of_uri.size === 0) return []
  return UNSENT.flatMap(name => {
    const value = of_number.get(name) ?? of_uri.get(name)
    return value === undefined ? [] : [value === '' ? name : `${name}=${value}`]
  })
}

/**
 * Number portability and carrier selection (RFC 4694), trunk groups (RFC 4904), extensions and sub-addresses
 * (RFC 3966). A routing number or a trunk group of a peer would send the call elsewhere than admission has decided.
 */
const UNSENT = ['npdi', 'rn', 'rn-context', 'cic', 'cic-context', 'tgrp', 'trunk-context', 'ext', 'isub', 'postd']

function isDigits(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 48 || c > 57) return false
  }
  return text.length > 0
}

function hasControls(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 32 || c === 127) return true
  }
  return false
}
