import { sql } from 'kysely'
import { type ClaimFacts, judgeSources, overlapKeys, PROVEN_DAYS, type Tenant } from '../../domain/identity/index.ts'
import type { Db, DigestProofTable, Trx } from '../db.ts'
import { readTogether, statement } from '../port.ts'
import { listSources, type SourceRow, saveTrunk, type TrunkRow, updateSource } from './trunks.ts'

/** Facts about the owners of addresses when a source is written (core/domain/identity/claims.ts). */

const DAY_MS = 86_400_000

// One parameter holds a list of any length. The keys of a JSON object: SQLite and PostgreSQL read them in the same way.
const listOf = (texts: readonly string[]): string => JSON.stringify(Object.fromEntries(texts.map(text => [text, 0])))
const listed = (list: string) => sql<string>`(select key from json_each(${list}))`

/** Reads the facts by which a tenant's write of these sources is judged. */
export async function claimFacts(
  db: Db,
  tenant: Tenant,
  sources: readonly { readonly id: string; readonly cidr: string }[],
  now: string,
): Promise<ClaimFacts> {
  const carriers = await db.selectFrom('carrier_source').select('cidr').distinct().execute()
  const ids = listOf(sources.map(({ id }) => id))
  const others = await db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('trunk.project_id', '=', tenant.project_id)
    .where('trunk.status', '!=', 'released')
    .where('trunk_source.id', 'not in', listed(ids))
    .executeTakeFirstOrThrow()
  const taken = await readTogether(db, ...sources.flatMap(({ cidr }) => readsOfTaken(cidr, tenant, now)))
  return {
    carriers: carriers.map(({ cidr }) => cidr),
    taken: taken.flat(),
    others_of_project: Number(others.count),
  }
}

/**
 * Builds the reads of other tenants' claims on a range, one row per kind, because the rule needs only their existence.
 * They use the index of ranges, so that their cost does not grow with the number of claims (decision 0560).
 */
export function readsOfTaken(cidr: string, { project_id, subaccount_id }: Tenant, now: string) {
  const keys = overlapKeys(cidr)
  if (!keys) return []
  const { first, last } = keys
  const since = new Date(Date.parse(now) - PROVEN_DAYS * DAY_MS).toISOString().slice(0, 10)
  const tenant = { project_id, subaccount_id }
  return [
    CLAIM_WITHIN({ ...tenant, first, last }),
    CLAIM_AROUND({ ...tenant, around: listOf(keys.around) }),
    PROVEN_WITHIN({ ...tenant, first, last, since }),
  ]
}

const ofAnother = ({ project_id, subaccount_id }: Tenant) =>
  sql<boolean>`not (trunk.project_id = ${project_id} and trunk.subaccount_id is not distinct from ${subaccount_id})`

/** Selects other tenants' sources. A trunk's sources count until it is released, because they identify its calls. */
const claimsOfOthers = (db: Db, tenant: Tenant) =>
  db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.cidr', 'trunk.project_id', 'trunk.subaccount_id', 'trunk.name as trunk_name'])
    .where('trunk_source.enabled', '=', 1)
    .where('trunk_source.standing', '=', 'full')
    .where('trunk.auth_mode', '=', 'ip_allow_list')
    .where('trunk.status', '!=', 'released')
    .where(ofAnother(tenant))
    .limit(1)

/** A source of another tenant, or an address that it has proved by digest. */
interface Taken extends Tenant {
  readonly cidr: string
  readonly trunk_name: string
}

interface Keys extends Tenant {
  readonly first: string
  readonly last: string
}

const CLAIM_WITHIN = statement((db, keys: Keys) =>
  claimsOfOthers(db, keys).where('range_key', '>=', keys.first).where('range_key', '<=', keys.last),
)

const CLAIM_AROUND = statement((db, keys: Tenant & { readonly around: string }) =>
  claimsOfOthers(db, keys).where('range_key', 'in', listed(keys.around)),
)

const PROVEN_WITHIN = statement((db, keys: Keys & { readonly since: string }) =>
  db
    .selectFrom('digest_proof')
    .innerJoin('trunk', 'trunk.id', 'digest_proof.trunk_id')
    .select(['digest_proof.address as cidr', 'trunk.project_id', 'trunk.subaccount_id', 'trunk.name as trunk_name'])
    .where('digest_proof.address_key', '>=', keys.first)
    .where('digest_proof.address_key', '<=', keys.last)
    .where('digest_proof.day', '>=', keys.since)
    .where(ofAnother(keys))
    .limit(1),
)

/** A customer's source that a carrier also has. It no longer identifies calls, because carriers take precedence. */
interface OverruledSource extends Tenant {
  readonly id: string
  readonly cidr: string
  readonly trunk: { readonly id: string; readonly name: string; readonly revision: number }
  readonly signaling_fqdn: string
  readonly created_at: string
  readonly carrier: { readonly cidr: string; readonly name: string }
}

const claimsOfAll = (db: Db) =>
  db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.id', 'cidr', 'trunk_source.created_at', 'trunk_id', 'trunk.name', 'trunk.revision'])
    .select(['trunk.signaling_fqdn', 'trunk.project_id', 'trunk.subaccount_id'])
    .where('trunk.status', '!=', 'released')
    .where('trunk.auth_mode', '=', 'ip_allow_list')
    .where('trunk_source.enabled', '=', 1)
    .where('trunk_source.standing', '=', 'full')

const OVERRULED_WITHIN = statement((db, keys: { first: string; last: string }) =>
  claimsOfAll(db).where('range_key', '>=', keys.first).where('range_key', '<=', keys.last),
)

const OVERRULED_AROUND = statement((db, keys: { around: string }) =>
  claimsOfAll(db).where('range_key', 'in', listed(keys.around)),
)

/** Returns the overruled sources of all projects, whichever was written first; each once, with one of the carriers. */
export async function overruledSources(db: Db): Promise<readonly OverruledSource[]> {
  const carriers = await db
    .selectFrom('carrier_source')
    .innerJoin('carrier', 'carrier.id', 'carrier_source.carrier_id')
    .select(['carrier_source.cidr', 'carrier.name'])
    .execute()
  const found = new Map<string, OverruledSource>()
  for (const carrier of carriers) {
    const keys = overlapKeys(carrier.cidr)
    if (!keys) continue
    const { first, last } = keys
    const around = listOf(keys.around)
    const rows = await readTogether(db, OVERRULED_WITHIN({ first, last }), OVERRULED_AROUND({ around }))
    for (const { trunk_id, name, revision, ...row } of rows.flat())
      found.set(row.id, { ...row, trunk: { id: trunk_id, name, revision }, carrier })
  }
  return [...found.values()]
}

/** Notes that a trunk's peer has authenticated by digest from an address. Only the last day is kept. */
export async function noteDigestProof(db: Db, proof: DigestProofTable): Promise<void> {
  await db
    .insertInto('digest_proof')
    .values(proof)
    .onConflict(conflict => conflict.columns(['trunk_id', 'address']).doUpdateSet({ day: proof.day }))
    .execute()
}

/** A source that does not fully count, with its trunk. Only for operators, because it names other tenants. */
export type LimitedSource = Pick<SourceRow, 'id' | 'cidr' | 'standing' | 'created_at' | 'trunk_id'> & {
  readonly trunk_name: string
  readonly project_id: string
  readonly subaccount_id: string | null
  /** Other tenants' current claims on its addresses. They may have changed since the source was written. */
  readonly overlaps: readonly Taken[]
  /** The carrier that takes precedence over it. */
  readonly carrier?: OverruledSource['carrier']
}

interface LimitedPage {
  readonly limit: number
  /** Last source of the previous page. */
  readonly after?: { readonly overruled: boolean; readonly created_at: string; readonly id: string }
}

/** Lists sources that wait for an operator or count only by name, oldest first, then those that carriers overrule. */
export async function limitedSources(db: Db, now: string, { limit, after }: LimitedPage): Promise<LimitedSource[]> {
  const limited = after?.overruled ? [] : await notInFull(db, now, { limit, ...(after ? { after } : {}) })
  if (limited.length === limit) return limited
  const all = (await overruledSources(db)).toSorted(olderFirst)
  const rest = after?.overruled ? all.filter(source => olderFirst(after, source) < 0) : all
  return [...limited, ...rest.slice(0, limit - limited.length).map(presentOverruled)]
}

type Dated = Pick<SourceRow, 'created_at' | 'id'>
const olderFirst = (a: Dated, b: Dated): number =>
  a.created_at === b.created_at ? compare(a.id, b.id) : compare(a.created_at, b.created_at)
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

async function notInFull(db: Db, now: string, { limit, after }: LimitedPage): Promise<LimitedSource[]> {
  let query = db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk_source.id', 'cidr', 'standing', 'trunk_source.created_at', 'trunk_id'])
    .select(['trunk.name as trunk_name', 'trunk.project_id', 'trunk.subaccount_id'])
    .where('standing', '!=', 'full')
    .where('trunk.status', '!=', 'released')
    .orderBy('trunk_source.created_at')
    .orderBy('trunk_source.id')
    .limit(limit)
  if (after)
    query = query
      .where('trunk_source.created_at', '>=', after.created_at)
      .where(eb => eb.or([eb('trunk_source.created_at', '>', after.created_at), eb('trunk_source.id', '>', after.id)]))
  const limited: LimitedSource[] = []
  for (const row of await query.execute())
    limited.push({ ...row, overlaps: (await readTogether(db, ...readsOfTaken(row.cidr, row, now))).flat() })
  return limited
}

const presentOverruled = ({ trunk, signaling_fqdn: _, ...source }: OverruledSource): LimitedSource => ({
  ...source,
  standing: 'full',
  trunk_id: trunk.id,
  trunk_name: trunk.name,
  overlaps: [],
})

type Approval =
  | { readonly source: SourceRow; readonly trunk: TrunkRow; readonly from_revision: number }
  | { readonly refused: 'unknown' | 'not_pending' | 'carriers' }

/**
 * Approves a source that is wide or one of many. Other tenants' claims are judged as if it were written now: approval
 * does not take addresses from another tenant.
 */
export async function approveSource(trx: Trx, id: string, now: string): Promise<Approval> {
  const found = await pendingSource(trx, id)
  if ('refused' in found) return found
  const { source, trunk } = found
  const facts = await claimFacts(trx, trunk, [source], now)
  const before = { trunk, sources: await listSources(trx, trunk.id) }
  const judged = judgeSources([source], trunk, before, facts, true)
  if (judged.kind === 'carriers') return { refused: 'carriers' }
  const standing = judged.sources[0]?.standing ?? 'pending_approval'
  await updateSource(trx, id, { standing })
  const saved = await saveTrunk(trx, trunk, {}, now)
  return { source: { ...source, standing }, trunk: saved, from_revision: trunk.revision }
}

/** Finds a source that waits for an operator, with its trunk. */
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
