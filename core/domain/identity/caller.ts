import { type ParsedNumber, parseNumber } from '../numbers/parse.ts'

/**
 * Whether the service may present a number. `forwarded`: the caller of an inbound call that a Dial sends on, marked in
 * the trace; `default`: the peer sent none that is owned and the trunk has a default caller.
 */
export type CallerOwnership = 'owned' | 'forwarded' | 'default' | 'invalid' | 'not_owned' | 'outside_service'

export interface CallerFacts {
  readonly given: string
  readonly e164: string | null
  readonly ownership: CallerOwnership
}

/** Caller headers of an INVITE: user parts of their URIs, decoded. */
interface CallerHeaders {
  readonly from: string
  /** P-Asserted-Identity, only when the peer is trusted for it. */
  readonly asserted?: string | null
  /** Values of Privacy (RFC 3323), such as `id`. */
  readonly privacy?: readonly string[]
}

interface ReadCaller {
  readonly given: string
  readonly number: ParsedNumber | null
  readonly from: 'asserted' | 'from' | 'default' | 'none'
  /** The caller's number must not be shown (CLIR): Privacy asks so, or From is anonymous. */
  readonly restricted: boolean
}

const RESTRICTING = new Set(['id', 'user', 'header', 'critical', 'full'])
const ANONYMOUS = /^(anonymous|restricted|unavailable|private)?$/i

/**
 * The number that a peer presents: P-Asserted-Identity, else From, else the trunk's default caller (national formats of
 * `country` are understood).
 */
export function readCaller(headers: CallerHeaders, country: string, default_caller: string | null = null): ReadCaller {
  const restricted =
    (headers.privacy ?? []).some(value => RESTRICTING.has(value.trim().toLowerCase())) || ANONYMOUS.test(headers.from)
  const asserted = headers.asserted ? parseNumber(headers.asserted, country) : null
  if (headers.asserted && asserted) return { given: headers.asserted, number: asserted, from: 'asserted', restricted }
  const number = parseNumber(headers.from, country)
  if (number) return { given: headers.from, number, from: 'from', restricted }
  const fallback = default_caller ? parseNumber(default_caller, country) : null
  if (default_caller && fallback) return { given: default_caller, number: fallback, from: 'default', restricted }
  return { given: headers.from, number: null, from: 'none', restricted }
}

/** How the presented number stands to the project. */
interface NumberStanding {
  /** Held by the project. */
  readonly of_project: boolean
  /** Routed to the trunk, or within the blocks delegated to the subtrunk. */
  readonly of_service: boolean
  /** The service has numbers of its own at all; without any it may present every number of the project. */
  readonly service_has_numbers: boolean
  /** It is the caller of the inbound call that is being forwarded. */
  readonly forwarded: boolean
}

/**
 * Whether a call's caller may be presented to the network when the call is sent on: the network itself told it. What a
 * trunk's peer writes into From proves nothing, so it would be a way to present any number (decision 0006).
 */
export const mayBeForwarded = (call: { readonly direction: string; readonly origin: string }): boolean =>
  call.direction === 'inbound' && call.origin === 'carrier'

export function ownershipOf(e164: string | null, standing: NumberStanding): CallerOwnership {
  if (e164 === null) return 'invalid'
  if (standing.forwarded) return 'forwarded'
  if (!standing.of_project) return 'not_owned'
  return standing.of_service || !standing.service_has_numbers ? 'owned' : 'outside_service'
}

/**
 * Headers that we send for a caller (RFC 3323, RFC 3325 §7). From hides a restricted caller. A network, which is
 * trusted, is told the identity all the same; whoever is called is not.
 */
export function presentedCaller(e164: string, restricted: boolean, { domain, trusted }: PresentedTo) {
  const address = `<sip:${e164}@${domain}>`
  if (!restricted) return { from: address, asserted: address, privacy: null }
  const from = '"Anonymous" <sip:anonymous@anonymous.invalid>'
  return { from, asserted: trusted ? address : null, privacy: 'id' as const }
}

interface PresentedTo {
  readonly domain: string
  /** A carrier, or the gateway through which a customer reaches the network: it keeps the caller's privacy. */
  readonly trusted: boolean
}
