import { parseAddress } from '../identity/address.ts'
import { compileSources, matchSources, type SourceIndex } from '../identity/sources.ts'
import type { AddressGuard } from './address-guard.ts'

/** The resolved destination of an outgoing request. */
export interface HostPort {
  /** IP literal without brackets. */
  readonly host: string
  readonly port: number
}

/** Our own listeners. Each of the hosts serves each of the ports. */
export interface OwnListeners {
  readonly hosts: SourceIndex<string>
  readonly ports: ReadonlySet<number>
  readonly rtp_ports: { readonly first: number; readonly last: number }
  /** The control link of the SIP server, which may listen on another host. */
  readonly control: HostPort | null
}

export interface AddressFacts {
  readonly own: OwnListeners
  /** Source addresses of carriers, with the carrier's id. */
  readonly carrier_sources: SourceIndex<string>
  /** Target addresses of carriers, with the carrier's id. */
  readonly carrier_endpoints: ReadonlyMap<string, string>
  /** Decides which addresses are public, or explicitly allowed. */
  readonly addresses: AddressGuard
}

export interface AddressOwner {
  /** The carrier whose target this is; null when somebody else named the address. */
  readonly carrier_id: string | null
  /** An address proven to be the peer's own, for example by a registration. It may be private. */
  readonly proven_host: string | null
}

/**
 * Returns why nothing may be sent to a named address; null when it is allowed (design section 10, "Ways out"). The
 * operator is responsible for the addresses of carriers.
 */
export function addressRefusal(facts: AddressFacts, address: HostPort, asked: AddressOwner): string | null {
  if (!parseAddress(address.host)) return `${address.host} is not an address`
  const { control } = facts.own
  // The sandbox carrier may use the control link's port number, over UDP.
  const is_control = asked.carrier_id === null && control?.port === address.port && control.host === address.host
  if (is_control || isOwnListener(facts.own, address))
    return `${address.host}:${address.port} is a listener of this platform`
  if (asked.carrier_id !== null) return null
  if (carrierAt(facts, address) !== null) return `${address.host} is the address of a carrier`
  if (address.host === asked.proven_host) return null
  const kind = facts.addresses.refusal(address.host)
  return kind === null ? null : `${address.host} is not public (${kind}) and not in STROWGER_ALLOW_PRIVATE_PEERS`
}

/**
 * Returns the carrier that owns an address; null for none. A carrier owns every port of its host. Only the sandbox
 * carrier shares our host, where it owns just its port.
 */
export function carrierAt(facts: Omit<AddressFacts, 'addresses'>, address: HostPort): string | null {
  const endpoint = facts.carrier_endpoints.get(endpointKey(facts.own, address))
  if (endpoint !== undefined || isOwnHost(facts.own, address.host)) return endpoint ?? null
  return matchSources(facts.carrier_sources, address.host)[0]?.owner ?? null
}

/** Collects the source and target addresses of carriers. */
export function carrierFacts(
  own: OwnListeners,
  carriers: readonly {
    readonly id: string
    readonly sources: readonly string[]
    readonly endpoints: readonly HostPort[]
  }[],
): Pick<AddressFacts, 'carrier_sources' | 'carrier_endpoints'> {
  const sources = carriers.flatMap(({ id, sources: cidrs }) =>
    cidrs.map(cidr => ({ cidr, selector_precedence: 0, owner: id })),
  )
  const endpoints = carriers.flatMap(carrier =>
    carrier.endpoints.map(address => [endpointKey(own, address), carrier.id] as const),
  )
  return { carrier_sources: compileSources(sources), carrier_endpoints: new Map(endpoints) }
}

function endpointKey(own: OwnListeners, { host, port }: HostPort): string {
  const words = parseAddress(host)?.words.join('.') ?? host.toLowerCase()
  return isOwnHost(own, host) ? `${words}|${port}` : words
}

const isOwnHost = (own: OwnListeners, host: string): boolean => matchSources(own.hosts, host).length > 0

function isOwnListener(own: OwnListeners, { host, port }: HostPort): boolean {
  const served = own.ports.has(port) || (port >= own.rtp_ports.first && port <= own.rtp_ports.last)
  return served && isOwnHost(own, host)
}
