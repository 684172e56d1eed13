import { parseAddress } from '../identity/address.ts'
import { compileSources, matchSources, type SourceIndex } from '../identity/sources.ts'
import type { AddressGuard } from './address-guard.ts'

/** Where a request of ours would go: a resolved address. */
export interface WayOut {
  /** IP literal without brackets. */
  readonly host: string
  readonly port: number
}

/** Our own listeners: each of these hosts serves each of these ports. */
export interface OwnListeners {
  readonly hosts: SourceIndex<string>
  readonly ports: ReadonlySet<number>
  readonly rtp_ports: { readonly first: number; readonly last: number }
  /** The control link of the SIP server, which may listen on another host. */
  readonly control: WayOut | null
}

export interface WaysOutFacts {
  readonly own: OwnListeners
  /** Addresses from which carriers call us, with the carrier's id. */
  readonly carrier_sources: SourceIndex<string>
  /** Addresses at which we call carriers, with the carrier's id. */
  readonly carrier_endpoints: ReadonlyMap<string, string>
  /** Judges what is public, or listed although it is not. */
  readonly addresses: AddressGuard
}

export interface WayOutAsked {
  /** The carrier whose own target this is; null: somebody else named the address. */
  readonly carrier_id: string | null
  /** An address that has proved to be the peer's own, as by a registration: it need not be public. */
  readonly proven_host: string | null
}

/**
 * Why nothing may be sent to an address that somebody named; null when it may (design section 10, "Ways out"). What an
 * operator configured of a carrier is the operator's to judge.
 */
export function wayOutRefusal(facts: WaysOutFacts, way: WayOut, asked: WayOutAsked): string | null {
  if (!parseAddress(way.host)) return `${way.host} is not an address`
  const { control } = facts.own
  // The sandbox carrier may have the control link's number, for UDP.
  const is_control = asked.carrier_id === null && control?.port === way.port && control.host === way.host
  if (is_control || isOwnListener(facts.own, way)) return `${way.host}:${way.port} is a listener of this platform`
  if (asked.carrier_id !== null) return null
  if (carrierAt(facts, way) !== null) return `${way.host} is the address of a carrier`
  if (way.host === asked.proven_host) return null
  const kind = facts.addresses.refusal(way.host)
  return kind === null ? null : `${way.host} is not public (${kind}) and not in STROWGER_ALLOW_PRIVATE_PEERS`
}

/**
 * The carrier that an address belongs to; null when it is none's. A carrier has its host to itself, whatever the port.
 * Only the sandbox carrier shares our host: there it has its own port alone.
 */
export function carrierAt(facts: Omit<WaysOutFacts, 'addresses'>, way: WayOut): string | null {
  const endpoint = facts.carrier_endpoints.get(endpointKey(facts.own, way))
  if (endpoint !== undefined || isOwnHost(facts.own, way.host)) return endpoint ?? null
  return matchSources(facts.carrier_sources, way.host)[0]?.owner ?? null
}

/** What is known of carriers' addresses: those that they call from, and those at which they are called. */
export function carrierFacts(
  own: OwnListeners,
  carriers: readonly {
    readonly id: string
    readonly sources: readonly string[]
    readonly endpoints: readonly WayOut[]
  }[],
): Pick<WaysOutFacts, 'carrier_sources' | 'carrier_endpoints'> {
  const sources = carriers.flatMap(({ id, sources: cidrs }) =>
    cidrs.map(cidr => ({ cidr, selector_precedence: 0, owner: id })),
  )
  const endpoints = carriers.flatMap(carrier =>
    carrier.endpoints.map(way => [endpointKey(own, way), carrier.id] as const),
  )
  return { carrier_sources: compileSources(sources), carrier_endpoints: new Map(endpoints) }
}

function endpointKey(own: OwnListeners, { host, port }: WayOut): string {
  const words = parseAddress(host)?.words.join('.') ?? host.toLowerCase()
  return isOwnHost(own, host) ? `${words}|${port}` : words
}

const isOwnHost = (own: OwnListeners, host: string): boolean => matchSources(own.hosts, host).length > 0

function isOwnListener(own: OwnListeners, { host, port }: WayOut): boolean {
  const served = own.ports.has(port) || (port >= own.rtp_ports.first && port <= own.rtp_ports.last)
  return served && isOwnHost(own, host)
}
