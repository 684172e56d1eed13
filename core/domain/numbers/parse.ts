import {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
  type PhoneNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { boundedMap } from '../bounded-map.ts'
import { withoutSeparators } from './separators.ts'

/** The kind of a destination, as far as policy and fraud detection need it. */
type NumberKind = 'ordinary' | 'mobile' | 'toll_free' | 'shared_cost' | 'premium' | 'satellite' | 'global'

export interface ParsedNumber {
  /** With the plus. */
  readonly e164: string
  /** The same without the plus. */
  readonly digits: string
  /** ISO 3166 code; null for global codes (such as 882) and for ranges shared by several countries. */
  readonly country: string | null
  readonly calling_code: string
  readonly kind: NumberKind
}

export interface CalledNumber {
  readonly given: string
  /** The country whose national formats were tried. */
  readonly country: string
  /** Null for what is not an E.164 number. */
  readonly number: ParsedNumber | null
  /** The called emergency or short code, when the configuration routes it. */
  readonly short_code?: string
}

/** An E.164 number has at most 15 digits. This leaves room for an international prefix and separators. */
const MAX_GIVEN_LENGTH = 40

// +870 Inmarsat, +881 global mobile satellite (Iridium, Globalstar), +882 and +883 international networks (Thuraya
// among them).
const SATELLITE = /^(870|881|88213|88216)/
const GLOBAL_CODES = new Set(['800', '808', '870', '878', '881', '882', '883', '888', '979'])

/**
 * Parses a number into E.164: `+` or `00` with a country code, or a national number of `country` (ISO code), with
 * separators anywhere. Digits without a prefix are a national number when possible, else an international one without
 * plus, as many PBXs send it. Returns null for anything else.
 */
export function parseNumber(given: string, country: string): ParsedNumber | null {
  if (given.length > MAX_GIVEN_LENGTH) return null
  const key = `${country} ${given}`
  const known = parsed.get(key)
  if (known !== undefined) return known.number
  const number = parse(given, country)
  parsed.set(key, { number })
  return number
}

/** Cached numbers. The numbers of a call are parsed several times, and those of a peer repeatedly. */
const MAX_KEPT = 2000
const parsed = boundedMap<string, { readonly number: ParsedNumber | null }>(MAX_KEPT)

function parse(given: string, country: string): ParsedNumber | null {
  const text = normalizeNumber(given)
  if (text === null) return null
  if (text.startsWith('+')) return presented(international(text), text)
  const national = isSupportedCountry(country) ? parsePhoneNumberFromString(text, country as CountryCode) : undefined
  if (national?.isValid()) return presented(national, hasCountryCode(national, text) ? `+${text}` : undefined)
  // No country code begins with 0, so these digits must be national.
  const full = text.startsWith('0') ? undefined : international(`+${text}`)
  return full?.isPossible() ? presented(full, `+${text}`) : presented(national)
}

/** Returns the calling code of a country, such as 234; '' for an unknown country. */
export const callingCode = (country: string): string =>
  isSupportedCountry(country) ? getCountryCallingCode(country) : ''

/** Parses like `parseNumber`, keeps the given text, and routes emergency and short codes as configured. */
export function parseCalled(
  given: string,
  country: string,
  shortCodes: ReadonlyMap<string, string> = NONE,
): CalledNumber {
  const code = normalizeNumber(given)?.replace(/^\+/, '')
  const sent = code === undefined ? undefined : shortCodes.get(code)
  if (sent === undefined || code === undefined) return { given, country, number: parseNumber(given, country) }
  return { given, country, number: parseNumber(sent, country), short_code: code }
}

/** Removes separators and turns `00` into `+`. Returns null when anything but digits remains, or too many. */
export function normalizeNumber(given: string): string | null {
  if (given.length > MAX_GIVEN_LENGTH) return null
  const text = withoutSeparators(given)
  const plus = text.startsWith('00') ? `+${text.slice(2)}` : text
  return /^\+?[0-9]{1,20}$/.test(plus) ? plus : null
}

const NONE: ReadonlyMap<string, string> = new Map()

const international = (text: string): PhoneNumber | undefined => parsePhoneNumberFromString(text)

/** Reports whether digits without plus, parsed as a national number, begin with the country's own code. */
const hasCountryCode = ({ countryCallingCode, nationalNumber }: PhoneNumber, text: string): boolean =>
  text !== nationalNumber && text.startsWith(countryCallingCode) && text.endsWith(nationalNumber)

// Accepts possible numbers, not only valid ones, because countries open ranges after the metadata was made.
function presented(number: PhoneNumber | undefined, written?: string): ParsedNumber | null {
  if (!number?.isPossible()) return null
  const e164 = written !== undefined && written !== number.number && !number.isValid() ? written : number.number
  if (!/^\+[1-9][0-9]{6,14}$/.test(e164) || hasNationalPrefix(number, written ?? e164)) return null
  const digits = e164.slice(1)
  return {
    e164,
    digits,
    country: number.country ?? null,
    calling_code: number.countryCallingCode,
    kind: kindOf(number, digits),
  }
}

/** National prefixes other than 0, by calling code (ITU-T E.164, national numbering plans). */
const NATIONAL_PREFIXES: Readonly<Record<string, string>> = { 1: '1', 7: '8', 375: '8', 692: '1', 993: '8' }

/**
 * Reports whether a national prefix follows the country code, as in +44 0909. Some networks ignore it and reach a
 * number whose rules and rates then do not match. For plans whose numbers may begin with such a digit (+39 06), the
 * known numbers decide.
 */
function hasNationalPrefix(number: PhoneNumber, written: string): boolean {
  const code = number.countryCallingCode
  const national = written.slice(1 + code.length)
  if (!national.startsWith('0') && !national.startsWith(NATIONAL_PREFIXES[code] ?? '0')) return false
  return number.number !== written || !number.isValid()
}

function kindOf(number: PhoneNumber, digits: string): NumberKind {
  if (SATELLITE.test(digits)) return 'satellite'
  switch (number.getType()) {
    case 'PREMIUM_RATE':
      return 'premium'
    case 'TOLL_FREE':
      return 'toll_free'
    case 'SHARED_COST':
      return 'shared_cost'
    case 'MOBILE':
      return 'mobile'
    default:
      return number.countryCallingCode === '979'
        ? 'premium'
        : GLOBAL_CODES.has(number.countryCallingCode)
          ? 'global'
          : 'ordinary'
  }
}
