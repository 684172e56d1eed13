import { boundedMap } from '../../core/domain/bounded-map.ts'
import {
  compileRealms,
  compileSources,
  holdsAddress,
  matchSources,
  type Realms,
} from '../../core/domain/identity/index.ts'
import {
  type AddressFacts,
  addressRefusal,
  carrierAt,
  carrierFacts,
  type HostPort,
} from '../../core/domain/network/peer-addresses.ts'
import type { EdgeFacts } from '../../core/runtime/edge-link.ts'
import { literalOf } from '../../core/runtime/sip/own-listeners.ts'

const MAX_KNOWN = 10_000

/** The peers that the configuration names. They are held in memory because every packet is checked against them. */
export interface ConfiguredPeers {
  /** Replaces the facts with those of the signaling node. */
  learn(facts: EdgeFacts): void
  /** Whether `learn` has been called. */
  known(): boolean
  /** Whether the host belongs to a trunk or a carrier. Such sources are never blocked, whatever they send. */
  covers(host: string): boolean
  /** Whether the sender at the address's host owns the address: it is a carrier, or a trunk that has no rival claim. */
  ownsAddress(address: HostPort): boolean
  /** Whether a request in a dialog with `peer` may go to the address that the peer named for it. */
  mayReach(named: HostPort, peer: HostPort): boolean
  /** The realms in which strangers are challenged. */
  realms(): Realms
}

export function configuredPeers(own_facts: Pick<AddressFacts, 'own' | 'addresses'>): ConfiguredPeers {
  let known = false
  let sources = compileSources<string>([])
  let owned = compileSources<string>([])
  let carriers = carrierFacts(own_facts.own, [])
  let realms = compileRealms([])
  const covered = boundedMap<string, boolean>(MAX_KNOWN)
  return {
    learn(facts) {
      // Targets given by name are omitted: signaling resolves them, and the source ranges suffice here.
      const named = facts.carriers.map(({ id, cidrs, targets }) => ({
        id,
        sources: cidrs,
        endpoints: targets.flatMap(target => literalOf(target)),
      }))
      carriers = carrierFacts(own_facts.own, named)
      const cidrs = facts.trunk_sources.map(({ cidr }) => cidr)
      sources = indexOf([...cidrs, ...facts.carriers.flatMap(carrier => carrier.cidrs)])
      owned = indexOf(facts.trunk_sources.filter(({ standing }) => standing === 'full').map(({ cidr }) => cidr))
      realms = compileRealms(facts.realms)
      covered.clear()
      known = true
    },
    known: () => known,
    covers(host) {
      const cached = covered.get(host)
      if (cached !== undefined) return cached
      const found = holdsAddress(sources, host)
      covered.set(host, found)
      return found
    },
    ownsAddress(address) {
      const carrier = carrierAt({ ...own_facts, ...carriers }, address)
      if (carrier === null) return holdsAddress(owned, address.host)
      return matchSources(carriers.carrier_sources, address.host).some(({ owner }) => owner === carrier)
    },
    mayReach(named, peer) {
      const facts = { ...own_facts, ...carriers }
      // A carrier may name any address, just as it chooses its targets.
      const asked = { carrier_id: carrierAt(facts, peer), proven_host: peer.host }
      return addressRefusal(facts, named, asked) === null
    },
    realms: () => realms,
  }
}

const indexOf = (cidrs: readonly string[]) =>
  compileSources(cidrs.map(cidr => ({ cidr, selector_precedence: 0, owner: cidr })))
