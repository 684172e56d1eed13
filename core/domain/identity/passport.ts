import type { CallerOwnership } from './caller.ts'

/**
 * Signed caller identity (STIR: RFC 8224, RFC 8225; SHAKEN: RFC 8588). Reads and writes claims and compares them with
 * the call. The calling code verifies signatures and certificates.
 */

/**
 * A: the caller may use the number. B: we know the caller, but not its right to the number. C: we only relay the call.
 */
export type Attestation = 'A' | 'B' | 'C'

interface PassportClaims {
  readonly attest: Attestation
  /** Digits, without plus. */
  readonly dest: string
  readonly orig: string
  /** Epoch seconds. */
  readonly iat_seconds: number
  /** Opaque UUID that lets us trace the call to its customer without naming the customer. */
  readonly origid: string
}

/**
 * Returns the attestation that we can sign. A forwarded caller is not our customer's number, so it gets B, or C when
 * the signature of its own network failed verification.
 */
export function attestationOf(ownership: CallerOwnership, arrived: Verstat | null): Attestation {
  if (ownership === 'owned' || ownership === 'default') return 'A'
  return ownership === 'forwarded' && arrived?.result !== 'failed' ? 'B' : 'C'
}

/** Returns header and payload in canonical form for signing: sorted keys, no whitespace (RFC 8225 §9). */
export function passportParts(claims: PassportClaims, x5u: string): { header: string; payload: string } {
  const { attest, dest, orig, iat_seconds, origid } = claims
  return {
    header: JSON.stringify({ alg: 'ES256', ppt: 'shaken', typ: 'passport', x5u }),
    payload: JSON.stringify({ attest, dest: { tn: [dest] }, iat: iat_seconds, orig: { tn: orig }, origid }),
  }
}

/** Returns the value of the Identity header (RFC 8224 §4). */
export const identityHeader = (token: string, x5u: string): string => `${token};info=<${x5u}>;alg=ES256;ppt="shaken"`

interface Passport {
  /** The text that the signature covers: the first two parts of the token and the dot between them. */
  readonly signed: string
  /** base64url. */
  readonly signature: string
  readonly x5u: string
  readonly claims: PassportClaims
}

const TOKEN = /^([A-Za-z0-9_-]{1,2048})\.([A-Za-z0-9_-]{1,4096})\.([A-Za-z0-9_-]{1,256})$/

/**
 * Returns the first well-formed SHAKEN passport of an Identity value, which may hold several, separated by commas.
 * Returns 'malformed' when none is well-formed, and null when the value holds none. `fromText` decodes base64url to
 * UTF-8.
 */
export function readIdentity(value: string, fromText: (text: string) => string): Passport | 'malformed' | null {
  let seen = false
  for (const one of value.slice(0, 32_768).split(',')) {
    const [token = '', ...parameters] = one.trim().split(';')
    const ppt = parameters.map(text => /^\s*ppt\s*=\s*"?([a-z]+)"?\s*$/i.exec(text)?.[1]).find(Boolean)
    if (ppt !== undefined && ppt.toLowerCase() !== 'shaken') continue
    seen = true
    const passport = readPassport(token, fromText)
    if (passport) return passport
  }
  return seen ? 'malformed' : null
}

function readPassport(token: string, fromText: (text: string) => string): Passport | null {
  const match = TOKEN.exec(token)
  if (!match) return null
  const [, first = '', second = '', signature = ''] = match
  const header = readObject(fromText(first))
  const payload = readObject(fromText(second))
  const { alg, ppt, typ, x5u } = header ?? {}
  if (alg !== 'ES256' || ppt !== 'shaken' || typ !== 'passport' || typeof x5u !== 'string') return null
  const { attest, dest, iat, orig, origid } = payload ?? {}
  const dests = Array.isArray(readRecord(dest)?.['tn']) ? (readRecord(dest)?.['tn'] as unknown[]) : []
  const origin = readRecord(orig)?.['tn']
  if (attest !== 'A' && attest !== 'B' && attest !== 'C') return null
  if (typeof iat !== 'number' || typeof origid !== 'string' || typeof origin !== 'string') return null
  const destination = dests.find((tn): tn is string => typeof tn === 'string')
  if (destination === undefined || !/^[0-9*#]{1,32}$/.test(origin)) return null
  const claims = { attest, dest: destination, orig: origin, iat_seconds: iat, origid } as const
  return { signed: `${first}.${second}`, signature, x5u, claims }
}

function readObject(text: string): Record<string, unknown> | null {
  try {
    return readRecord(JSON.parse(text))
  } catch {
    return null
  }
}

const readRecord = (value: unknown): Record<string, unknown> | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null

export interface Verstat {
  readonly result: 'passed' | 'failed' | 'none'
  readonly attest: Attestation | null
  /** Why verification did not pass, as a sentence. */
  readonly detail: string | null
}

/** Maximum age of a passport: allows for clock skew between networks and for transit time (RFC 8224 §6.2.1). */
const FRESH_SECONDS = 60

/** Explains why the claims do not match this call; null when they do. Numbers are E.164, with or without plus. */
export function claimsFault(
  claims: PassportClaims,
  call: { readonly caller: string; readonly called: string; readonly now_ms: number },
): string | null {
  const digits = (text: string): string => text.replace(/[^0-9*#]/g, '')
  if (Math.abs(call.now_ms / 1000 - claims.iat_seconds) > FRESH_SECONDS) return 'the passport is not of this minute'
  if (claims.orig !== digits(call.caller)) return `it is signed for the caller ${claims.orig}`
  if (claims.dest !== digits(call.called)) return `it is signed for the called number ${claims.dest}`
  return null
}

/** Returns the `verstat` value (ATIS-1000074). `withAttestation` adds the attestation, as the compatible API does. */
export function verstatText({ result, attest }: Verstat, withAttestation = false): string {
  const end = withAttestation && attest !== null ? `-${attest}` : ''
  return result === 'none' ? 'No-TN-Validation' : `TN-Validation-${result === 'passed' ? 'Passed' : 'Failed'}${end}`
}
