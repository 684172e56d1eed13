import type { EdgeFacts } from '../../runtime/edge-link.ts'
import type { Db } from '../db.ts'

/** Reads the configuration that the SIP edge needs. */
export async function readEdgeFacts(db: Db): Promise<EdgeFacts> {
  const [trunk_sources, cidrs, targets, realms] = await Promise.all([
    db
      .selectFrom('trunk_source')
      .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
      .select(['trunk_source.cidr', 'trunk_source.standing'])
      .where('trunk_source.enabled', '=', 1)
      .where('trunk_source.standing', '!=', 'pending_approval')
      .where('trunk.auth_mode', '=', 'ip_allow_list')
      .where('trunk.status', '!=', 'released')
      .execute(),
    db.selectFrom('carrier_source').select(['cidr', 'carrier_id']).execute(),
    db.selectFrom('carrier_target').select(['carrier_id', 'sip_uri']).execute(),
    db
      .selectFrom('digest_credential')
      .leftJoin('trunk', 'trunk.id', 'digest_credential.trunk_id')
      .select(['digest_credential.realm', 'trunk.signaling_fqdn as host'])
      .where('digest_credential.enabled', '=', 1)
      .where('digest_credential.revoked_at', 'is', null)
      .execute(),
  ])
  const carriers = [...new Set([...cidrs, ...targets].map(({ carrier_id }) => carrier_id))].map(id => ({
    id,
    cidrs: cidrs.filter(row => row.carrier_id === id).map(({ cidr }) => cidr),
    targets: targets.filter(row => row.carrier_id === id).map(({ sip_uri }) => sip_uri),
  }))
  return { trunk_sources, carriers, realms }
}
