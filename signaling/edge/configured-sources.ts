import { LRUCache } from 'lru-cache'
import { compileSources, holdsAddress, matchSources } from '../../core/domain/identity/index.ts'
import {
  carrierAt,
  carrierFacts,
  type WayOut,
  type WaysOutFacts,
  wayOutRefusal,
} from '../../core/domain/network/ways-out.ts'
import type { Log } from '../../core/runtime/log.ts'
import { literalOf } from '../../core/runtime/sip/own-listeners.ts'
import type { State } from '../../core/state/index.ts'
import { type Following, followConfiguration } from './follow-configuration.ts'

const MAX_KNOWN = 10_000

export interface ConfiguredSources extends Following {
  /** Whether an address is a trunk's or a carrier's: these are never blocked, whatever they send. */
  covers(host: string): boolean
  /** Whether an address belongs to whoever sends from its host: to a carrier, or to a trunk that nobody else claims. */
  ownsAddress(address: WayOut): boolean
  /** Whether a request in a dialog with `peer` may go to the address that the peer named for it. */
  mayReach(named: WayOut, peer: WayOut): boolean
}

/** Follows the sources of trunks and carriers. They are kept in memory: they are asked for each packet. */
export async function watchSources(
  state: Pick<State, 'db'>,
  log: Log,
  ways: Pick<WaysOutFacts, 'own' | 'addresses'>,
): Promise<ConfiguredSources> {
  let sources = compileSources<string>([])
  let owned = compileSources<string>([])
  let carriers = carrierFacts(ways.own, [])
  const known = new LRUCache<string, boolean>({ max: MAX_KNOWN })

  const read = async (): Promise<void> => {
    // Only what identifies a trunk: ranges of digest trunks would let strangers there guess for ever.
    const trunks = await state.db
      .selectFrom('trunk_source')
      .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
      .select(['trunk_source.cidr', 'trunk_source.standing'])
      .where('trunk_source.enabled', '=', 1)
      .where('trunk_source.standing', '!=', 'pending_approval')
      .where('trunk.auth_mode', '=', 'ip_allow_list')
      .where('trunk.status', '!=', 'released')
      .execute()
    const of_carriers = await state.db.selectFrom('carrier_source').select(['cidr', 'carrier_id']).execute()
    carriers = carrierFacts(ways.own, await carriersOf(state, of_carriers))
    sources = indexOf([...trunks, ...of_carriers])
    owned = indexOf(trunks.filter(({ standing }) => standing === 'full'))
    known.clear()
  }
  const failed = 'the sources of trunks and carriers cannot be read: those of before count'
  const following = await followConfiguration(state, log, { read, failed })
  return {
    covers(host) {
      const cached = known.get(host)
      if (cached !== undefined) return cached
      const covered = holdsAddress(sources, host)
      known.set(host, covered)
      return covered
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
    ...following,
  }
}

const indexOf = (rows: readonly { readonly cidr: string }[]) =>
  compileSources(rows.map(({ cidr }) => ({ cidr, selector_precedence: 0, owner: cidr })))

/** Names of carriers' targets are left out: signaling resolves those, and here the sources tell enough. */
async function carriersOf(
  state: Pick<State, 'db'>,
  sources: readonly { readonly cidr: string; readonly carrier_id: string }[],
) {
  const targets = await state.db.selectFrom('carrier_target').select(['carrier_id', 'sip_uri']).execute()
  return [...new Set([...sources, ...targets].map(({ carrier_id }) => carrier_id))].map(id => ({
    id,
    sources: sources.filter(row => row.carrier_id === id).map(({ cidr }) => cidr),
    endpoints: targets.filter(row => row.carrier_id === id).flatMap(({ sip_uri }) => literalOf(sip_uri)),
  }))
}
