import { type ParsedNumber, parseNumber } from '../numbers/parse.ts'

/**
 * Whether the service may present a number. `forwarded`: the caller of an inbound call that a Dial forwards; the trace
 * records it. `default`: the peer sent no number that the service owns, so the trunk's default caller applies.
 */
export type CallerOwnership = 'owned' | 'forwarded' | 'default' | 'invalid' | 'not_owned' | 'outside_service'

export interface CallerFacts {
  readonly given: string
  readonly e164: string | null
  readonly ownership: CallerOwnership
}

/** The caller headers of an INVITE. `from` and `asserted` are decoded user parts of URIs. */
interface CallerHeaders {
  readonly from: string
  /** P-Asserted-Identity, set only when we trust the peer to assert it. */
  readonly asserted?: string | null
  /** Values of Privacy (RFC 3323), such as `id`. */
  readonly privacy?: readonly string[]
}

interface ReadCaller {
  readonly given: string
  readonly number: ParsedNumber | null
  readonly from: 'asserted' | 'from' | 'default' | 'none'
  /** The caller's number must not be shown (CLIR): Privacy requests it, or From is anonymous. */
  readonly restricted: boolean
}

const RESTRICTING = new Set(['id', 'user', 'header', 'critical', 'full'])
const ANONYMOUS = /^(anonymous|restricted|unavailable|private)?$/i

/**
 * Reads the number that a peer presents: P-Asserted-Identity, else From, else the trunk's default caller. Accepts the
 * national formats of `country`.
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

/** How the presented number relates to the project and the service. */
interface NumberStanding {
  /** The project holds the number. */
  readonly of_project: boolean
  /** The number is routed to the trunk, or lies within the blocks delegated to the subtrunk. */
  readonly of_service: boolean
  /** The service has its own numbers. A service without any may present every number of the project. */
  readonly service_has_numbers: boolean
  /** The number is the caller of the inbound call that is being forwarded. */
  readonly forwarded: boolean
}

/**
 * Reports whether a forwarded call may present its original caller to the network: only when the network sent that
 * caller. A trunk's peer can write any number into From, so forwarding its From would let it spoof (docs/calls.md).
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
 * Returns the headers that present a caller (RFC 3323, RFC 3325 §7). From hides a restricted caller. A trusted network
 * still receives the number in P-Asserted-Identity; an untrusted peer does not.
 */
export function presentedCaller(e164: string, restricted: boolean, { domain, trusted }: PresentedTo) {
  const address = `<sip:${e164}@${domain}>`
  if (!restricted) return { from: address, asserted: address, privacy: null }
  const from = '"Anonymous" <sip:anonymous@anonymous.invalid>'
  return { from, asserted: trusted ? address : null, privacy: 'id' as const }
}

interface PresentedTo {
  readonly domain: string
  /** The peer honours Privacy: a carrier, or the gateway through which a customer reaches the network. */
  readonly trusted: boolean
}
