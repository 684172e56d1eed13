import {
  type Claim,
  type ClaimFacts,
  judgeSources,
  keysOfRange,
  PROVEN_DAYS,
  type ProvenAddress,
} from '../domain/identity/index.ts'
import type { Db, DigestProofTable, Trx } from './index.ts'
import { listSources, type SourceRow, saveTrunk, type TrunkRow, updateSource } from './trunks.ts'

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

/** A trunk's peer has proved a password from an address; the last day is kept. */
export async function noteDigestProof(db: Db, proof: DigestProofTable): Promise<void> {
  await db
    .insertInto('digest_proof')
    .values(proof)
    .onConflict(conflict => conflict.columns(['trunk_id', 'address']).doUpdateSet({ day: proof.day }))
    .execute()
}

/** A source that does not count as its owner wrote it, with its trunk. */
export type LimitedSource = Pick<SourceRow, 'id' | 'cidr' | 'standing' | 'created_at' | 'trunk_id'> & {
  readonly trunk_name: string
  readonly project_id: string
}

/** Sources that wait for an operator, or count by name alone, oldest first. */
export const limitedSources = (db: Db): Promise<LimitedSource[]> =>
  db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.id', 'cidr', 'standing', 'trunk_source.created_at', 'trunk_id', 'trunk.project_id'])
    .select('trunk.name as trunk_name')
    .where('standing', '!=', 'full')
    .where('trunk.status', '!=', 'released')
    .orderBy('trunk_source.created_at')
    .orderBy('trunk_source.id')
    .execute()

export type Approval =
  | { readonly source: SourceRow; readonly trunk: TrunkRow; readonly from_revision: number }
  | { readonly refused: 'unknown' | 'not_pending' | 'carriers' }

/**
 * An operator lets a wide source, or one of many, count. What it counts for beside the claims of others is judged as if
 * it were written now: approval makes no source another tenant's.
 */
export async function approveSource(trx: Trx, id: string, now: string): Promise<Approval> {
  const found = await pendingSource(trx, id)
  if ('refused' in found) return found
  const { source, trunk } = found
  const facts = await claimFacts(trx, trunk.project_id, [source], now)
  const before = { trunk, sources: await listSources(trx, trunk.id) }
  const judged = judgeSources([source], trunk, before, facts, true)
  if (judged.kind === 'carriers') return { refused: 'carriers' }
  const standing = judged.sources[0]?.standing ?? 'pending_approval'
  await updateSource(trx, id, { standing })
  const saved = await saveTrunk(trx, trunk, {}, now)
  return { source: { ...source, standing }, trunk: saved, from_revision: trunk.revision }
}

/** A source that waits for an operator, with its trunk. */
export async function pendingSource(
  trx: Trx,
  id: string,
): Promise<{ readonly source: SourceRow; readonly trunk: TrunkRow } | { readonly refused: 'unknown' | 'not_pending' }> {
  const source = await trx.selectFrom('trunk_source').selectAll().where('id', '=', id).executeTakeFirst()
  if (!source) return { refused: 'unknown' }
  if (source.standing !== 'pending_approval') return { refused: 'not_pending' }
  const trunk = await trx.selectFrom('trunk').selectAll().where('id', '=', source.trunk_id).executeTakeFirstOrThrow()
  return { source, trunk }
}
