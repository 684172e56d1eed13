import { parseDigits, splitList, unquoted, valueParams } from './uri.ts'

// Readers of header values that are neither addresses nor bodies: numbers, tokens and their parameters. The edge and
// signaling call them, so that both understand a message alike. Parameters that nothing needs make no value unreadable.

type Text = string | null | undefined

/** What stands before the first parameter, in lower case; '' without a value. */
const headOf = (text: Text): string => {
  const value = text ?? ''
  const semi = value.indexOf(';')
  return (semi < 0 ? value : value.slice(0, semi)).trim().toLowerCase()
}

const MAX_SECONDS = 2 ** 31 - 1

/**
 * Reads `delta-seconds` of Expires, Min-Expires, Min-SE and Retry-After, and of a Contact's `expires`, which may be
 * quoted. Parameters and a comment may follow (RFC 3261 §20.33). Null when there is no number, or one above 2^31-1.
 */
export function readSeconds(text: Text): number | null {
  const head = headOf(unquoted((text ?? '').trim()))
  const comment = head.indexOf('(')
  return parseDigits((comment < 0 ? head : head.slice(0, comment)).trim(), MAX_SECONDS) ?? null
}

/** Max-Forwards (RFC 3261 §20.22): 0 to 255; null when it is absent or none. */
export const readHops = (text: Text): number | null => parseDigits((text ?? '').trim(), 255) ?? null

/** Returns whether a list of tokens, as in Supported, Require and Allow, has `token`. Case does not count. */
export function hasToken(text: Text, token: string): boolean {
  const wanted = token.toLowerCase()
  return splitList(text ?? '').some(item => headOf(item) === wanted)
}

/** Reads a value that is one token with parameters, as of Event, Subscription-State and Refer-Sub, in lower case. */
export const readToken = headOf

interface SessionExpires {
  readonly seconds: number
  readonly refresher: 'uac' | 'uas' | null
}

/** Reads Session-Expires (RFC 4028 §4); null when it has no number. */
export function readSessionExpires(text: Text): SessionExpires | null {
  if (text === null || text === undefined) return null
  const seconds = readSeconds(text)
  if (seconds === null) return null
  const refresher = valueParams(text).get('refresher')?.toLowerCase()
  return { seconds, refresher: refresher === 'uac' || refresher === 'uas' ? refresher : null }
}

/** Reads CSeq: the number, below 2^31 (RFC 3261 §8.1.1.5), and the method. */
export function parseCSeq(value: string | undefined): { seq: number; method: string } | undefined {
  if (value === undefined) return undefined
  let i = 0
  while (i < value.length && value.charCodeAt(i) >= 48 && value.charCodeAt(i) <= 57) i++
  const seq = parseDigits(value.slice(0, i), 2 ** 31 - 1)
  const method = value.slice(i).trim()
  return seq === undefined || i === value.length || method === '' ? undefined : { seq, method }
}

/** Reads RAck (RFC 3262 §7.2): the RSeq of a reliable response, and the CSeq of its request. */
export function readRAck(text: Text): { rseq: number; cseq: { seq: number; method: string } } | null {
  const value = (text ?? '').trim()
  const blank = value.search(/\s/)
  const rseq = parseDigits(value.slice(0, Math.max(0, blank)), 2 ** 32 - 1)
  const cseq = parseCSeq(value.slice(Math.max(0, blank)).trimStart())
  return rseq === undefined || !cseq ? null : { rseq, cseq }
}

/** Reads the values of Privacy (RFC 3323 §4.2), in lower case. Some devices separate them by commas. */
export const readPrivacy = (text: Text): string[] =>
  (text ?? '')
    .split(/[;,]/)
    .map(value => unquoted(value.trim()).toLowerCase())
    .filter(value => value !== '')

interface Reason {
  /** `SIP` or `Q.850`, in upper case. */
  readonly protocol: string
  readonly cause: number
}

const MAX_REASONS = 8

/**
 * The Reason of a CANCEL when another telephone has taken the call, with the text of RFC 3326 §3.1. Telephones list a
 * missed call without it; some look for the text, others for the cause.
 */
export const COMPLETED_ELSEWHERE = 'SIP;cause=200;text="Call completed elsewhere"'

/** Reads the protocols and causes of Reason (RFC 3326 §2), without their texts, which may name hosts. */
export const readReasons = (text: Text): Reason[] =>
  splitList((text ?? '').slice(0, 2048))
    .slice(0, MAX_REASONS)
    .flatMap(value => {
      const cause = parseDigits(unquoted(valueParams(value).get('cause') ?? ''), 999)
      return cause === undefined ? [] : [{ protocol: headOf(value).toUpperCase(), cause }]
    })

/** Returns the status of a status line (RFC 3261 §7.2), with which a `message/sipfrag` begins; null without one. */
export function statusIn(text: string): number | null {
  const match = /^SIP\/2\.0[ \t]+(\d{3})(?!\d)/i.exec(text)
  return match ? Number(match[1]) : null
}
