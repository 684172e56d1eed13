import { LRUCache } from 'lru-cache'
import {
  compileRealms,
  compileSources,
  holdsAddress,
  matchSources,
  type Realms,
} from '../../core/domain/identity/index.ts'
import {
  carrierAt,
  carrierFacts,
  type WayOut,
  type WaysOutFacts,
  wayOutRefusal,
} from '../../core/domain/network/ways-out.ts'
import type { EdgeFacts } from '../../core/runtime/edge-link.ts'
import { literalOf } from '../../core/runtime/sip/own-listeners.ts'

const MAX_KNOWN = 10_000

/** The peers that the configuration names. They are kept in memory, because each packet asks for them. */
export interface ConfiguredPeers {
  /** Takes what the signaling node tells. */
  learn(facts: EdgeFacts): void
  /** Whether the configuration has been told. */
  known(): boolean
  /** Whether an address is a trunk's or a carrier's: these are never blocked, whatever they send. */
  covers(host: string): boolean
  /** Whether an address belongs to whoever sends from its host: to a carrier, or to a trunk that nobody else claims. */
  ownsAddress(address: WayOut): boolean
  /** Whether a request in a dialog with `peer` may go to the address that the peer named for it. */
  mayReach(named: WayOut, peer: WayOut): boolean
  /** Realms in which strangers are challenged. */
  realms(): Realms
}

export function configuredPeers(ways: Pick<WaysOutFacts, 'own' | 'addresses'>): ConfiguredPeers {
  let known = false
  let sources = compileSources<string>([])
  let owned = compileSources<string>([])
  let carriers = carrierFacts(ways.own, [])
  let realms = compileRealms([])
  const covered = new LRUCache<string, boolean>({ max: MAX_KNOWN })
  return {
    learn(facts) {
      // Names of targets are left out: signaling resolves those, and the sources tell enough here.
      const named = facts.carriers.map(({ id, cidrs, targets }) => ({
        id,
        sources: cidrs,
        endpoints: targets.flatMap(target => literalOf(target)),
      }))
      carriers = carrierFacts(ways.own, named)
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
      const carrier = carrierAt({ ...ways, ...carriers }, address)
      if (carrier === null) return holdsAddress(owned, address.host)
      return matchSources(carriers.carrier_sources, address.host).some(({ owner }) => owner === carrier)
    },
    mayReach(named, peer) {
      const facts = { ...ways, ...carriers }
      // What a carrier names is its own affair, as its targets are.
      const asked = { carrier_id: carrierAt(facts, peer), proven_host: peer.host }
      return wayOutRefusal(facts, named, asked) === null
    },
    realms: () => realms,
  }
}

const indexOf = (cidrs: readonly string[]) =>
  compileSources(cidrs.map(cidr => ({ cidr, selector_precedence: 0, owner: cidr })))
