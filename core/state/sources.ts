import { type Claim, type ClaimFacts, keysOfRange, PROVEN_DAYS, type ProvenAddress } from '../domain/identity/index.ts'
import type { Db } from './index.ts'

/** What is known of addresses when a source is written: whose they are (core/domain/identity/claims.ts). */

const DAY_MS = 86_400_000

/** What a write of these sources of a project is judged by. */
export async function claimFacts(
  db: Db,
  project_id: string,
  sources: readonly { readonly id: string; readonly cidr: string }[],
  now: string,
): Promise<ClaimFacts> {
  const carriers = await db.selectFrom('carrier_source').select('cidr').distinct().execute()
  const own = await db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select('trunk_source.id')
    .where('trunk.project_id', '=', project_id)
    .where('trunk.status', '!=', 'released')
    .execute()
  return {
    carriers: carriers.map(({ cidr }) => cidr),
    claims: await claims(db),
    proven: await provenAddresses(db, sources, now),
    others_of_project: own.filter(({ id }) => !sources.some(written => written.id === id)).length,
  }
}

/** Those of a trunk on its way out count until it is released: its calls are still told by them. */
const claims = (db: Db): Promise<Claim[]> =>
  db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.cidr', 'trunk.project_id', 'trunk.subaccount_id'])
    .where('trunk_source.enabled', '=', 1)
    .where('trunk_source.standing', '=', 'full')
    .where('trunk.auth_mode', '=', 'ip_allow_list')
    .where('trunk.status', '!=', 'released')
    .execute()

async function provenAddresses(
  db: Db,
  sources: readonly { readonly cidr: string }[],
  now: string,
): Promise<ProvenAddress[]> {
  const since = new Date(Date.parse(now) - PROVEN_DAYS * DAY_MS).toISOString().slice(0, 10)
  const proven: ProvenAddress[] = []
  for (const { cidr } of sources) {
    const range = keysOfRange(cidr)
    if (!range) continue
    const rows = await db
      .selectFrom('digest_proof')
      .innerJoin('trunk', 'trunk.id', 'digest_proof.trunk_id')
      .select(['digest_proof.address', 'trunk.project_id', 'trunk.subaccount_id'])
      .distinct()
      .where('digest_proof.address_key', '>=', range.first)
      .where('digest_proof.address_key', '<=', range.last)
      .where('digest_proof.day', '>=', since)
      .execute()
    proven.push(...rows)
  }
  return proven
}
