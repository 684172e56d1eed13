import {
  type CountryCode,
  isSupportedCountry,
  type PhoneNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'

/** What kind of destination a number is, as far as it matters for policy and fraud. */
type NumberKind = 'ordinary' | 'mobile' | 'toll_free' | 'shared_cost' | 'premium' | 'satellite' | 'global'

export interface ParsedNumber {
  /** With the plus. */
  readonly e164: string
  /** The same without the plus. */
  readonly digits: string
  /** ISO 3166 code; null for global codes (such as 882) and where the range is of several countries. */
  readonly country: string | null
  readonly calling_code: string
  readonly kind: NumberKind
}

export interface CalledNumber {
  readonly given: string
  /** The country whose national formats were tried. */
  readonly country: string
  /** Null when it is no E.164 number. */
  readonly number: ParsedNumber | null
  /** The emergency or short code that was called, when configuration sends it somewhere. */
  readonly short_code?: string
}

/** The longest E.164 number has 15 digits; with an international prefix and separators nobody needs more than this. */
const MAX_GIVEN_LENGTH = 40

// RFC 3966 §5.1.1 visual separators, and the spaces that people type.
const SEPARATORS = /[\s().\-/\u00a0]/g

// +870 Inmarsat, +881 global mobile satellite (Iridium, Globalstar), +882 and +883 international networks (Thuraya
// among them).
const SATELLITE = /^(870|881|88213|88216)/
const GLOBAL_CODES = new Set(['800', '808', '870', '878', '881', '882', '883', '888', '979'])

/**
 * The number in E.164: `+` or `00` and a country code, or a national number of `country` (ISO code), with separators
 * anywhere. Digits without prefix are a national number when they can be one, else an international one without plus,
 * as many PBXs send it. Null when it is neither.
 */
export function parseNumber(given: string, country: string): ParsedNumber | null {
  if (given.length > MAX_GIVEN_LENGTH) return null
  const key = `${country} ${given}`
  const known = parsed.get(key)
  if (known !== undefined) return known
  if (parsed.size >= MAX_KEPT) parsed.clear()
  const number = parse(given, country)
  parsed.set(key, number)
  return number
}

/** A call's numbers are asked for several times in a row, a peer's own ones again and again. */
const MAX_KEPT = 2000
const parsed = new Map<string, ParsedNumber | null>()

function parse(given: string, country: string): ParsedNumber | null {
  const text = normalizeNumber(given)
  if (text === null) return null
  if (text.startsWith('+')) return presented(international(text), text)
  const national = isSupportedCountry(country) ? parsePhoneNumberFromString(text, country as CountryCode) : undefined
  if (national?.isValid()) return presented(national, hasCountryCode(national, text) ? `+${text}` : undefined)
  // No country code begins with 0, so such digits can only be national.
  const full = text.startsWith('0') ? undefined : international(`+${text}`)
  return full?.isPossible() ? presented(full, `+${text}`) : presented(national)
}

/** As `parseNumber`, keeping what was given, and with emergency and short codes sent where configuration says. */
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

/** Separators removed and `00` made `+`; null when anything but digits is left, or too much. */
export function normalizeNumber(given: string): string | null {
  if (given.length > MAX_GIVEN_LENGTH) return null
  const text = given.replace(SEPARATORS, '')
  const plus = text.startsWith('00') ? `+${text.slice(2)}` : text
  return /^\+?[0-9]{1,20}$/.test(plus) ? plus : null
}

const NONE: ReadonlyMap<string, string> = new Map()

const international = (text: string): PhoneNumber | undefined => parsePhoneNumberFromString(text)

/** Whether digits without plus that were read as a national number begin with the country's own code. */
const hasCountryCode = ({ countryCallingCode, nationalNumber }: PhoneNumber, text: string): boolean =>
  text !== nationalNumber && text.startsWith(countryCallingCode) && text.endsWith(nationalNumber)

// Possible, not valid: a range that a country opened after the metadata were made must stay reachable.
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

/** Where it is not 0, by calling code (ITU-T E.164, national numbering plans). */
const NATIONAL_PREFIXES: Readonly<Record<string, string>> = { 1: '1', 7: '8', 375: '8', 692: '1', 993: '8' }

/**
 * Whether a national prefix stands behind the country code, as in +44 0909. Some networks skip it, but no rule and no
 * rate of the number it then reaches has that prefix. Plans whose numbers begin with such a digit (+39 06) go by the
 * numbers that are known.
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
