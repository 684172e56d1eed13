import { type Selectable, sql } from 'kysely'
import { rangeKey } from '../../domain/identity/address.ts'
import { counted } from '../../domain/text/counted.ts'
import { countLiveCalls } from '../calls/counters.ts'
import type {
  Db,
  DigestCredentialTable,
  OutboundPolicyTable,
  TerminationTargetTable,
  TrunkSourceTable,
  TrunkTable,
  Trx,
} from '../db.ts'
import { queueWrite, readTogether, statement, updateOf } from '../port.ts'

export type TrunkRow = Selectable<TrunkTable>
/** A source without `range_key`, which derives from `cidr`. */
export type SourceRow = Omit<Selectable<TrunkSourceTable>, 'range_key'>
export type CredentialRow = Selectable<DigestCredentialTable>
export type TargetRow = Selectable<TerminationTargetTable>

/** Figures of a trunk from other tables. */
export interface TrunkFigures {
  live_calls: number
  numbers: number
  targets: number
  /** Enabled targets that left two OPTIONS in a row unanswered. */
  targets_silent: number
  subaccount_name: string | null
  policy: AttachedPolicy | null
}

export const NO_TRUNK_FIGURES: TrunkFigures = {
  live_calls: 0,
  numbers: 0,
  targets: 0,
  targets_silent: 0,
  subaccount_name: null,
  policy: null,
}

type AttachedPolicy = Pick<
  Selectable<OutboundPolicyTable>,
  'id' | 'name' | 'revision' | 'daily_spend_limit_minor' | 'max_destination_rate_minor'
>

/** Finds a trunk. Released ones stay for call records but are not found. */
export const findTrunk = (db: Db, project_id: string, id: string): Promise<TrunkRow | undefined> =>
  db
    .selectFrom('trunk')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released')
    .executeTakeFirst()

/** Finds a trunk of any project that is not released. For operators. */
export const findAnyTrunk = (db: Db, id: string): Promise<TrunkRow | undefined> =>
  db.selectFrom('trunk').selectAll().where('id', '=', id).where('status', '!=', 'released').executeTakeFirst()

/** Whose a trunk is or was: calls of a released trunk stay in the history. */
export const ownerOfTrunk = (
  db: Db | Trx,
  id: string,
): Promise<Pick<TrunkRow, 'project_id' | 'subaccount_id'> | undefined> =>
  db.selectFrom('trunk').select(['project_id', 'subaccount_id']).where('id', '=', id).executeTakeFirst()

interface TrunkPage {
  /** Null: no limit. */
  readonly limit: number | null
  /** Last trunk of the previous page. */
  readonly after?: { readonly name: string; readonly id: string }
  readonly subaccount_id: string | null
}

/** Lists a project's trunks by name. Reads only one page, however many there are. */
export function listTrunks(db: Db, project_id: string, page: TrunkPage): Promise<TrunkRow[]> {
  let query = db
    .selectFrom('trunk')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released')
    .orderBy('name')
    .orderBy('id')
  if (page.subaccount_id !== null) query = query.where('subaccount_id', '=', page.subaccount_id)
  const { after } = page
  if (after)
    query = query
      .where('name', '>=', after.name)
      .where(eb => eb.or([eb('name', '>', after.name), eb('id', '>', after.id)]))
  return (page.limit === null ? query : query.limit(page.limit)).execute()
}

/** Counts the trunks of a project that are not released. */
export const countTrunks = async (trx: Trx, project_id: string): Promise<number> => {
  const { count } = await trx
    .selectFrom('trunk')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('project_id', '=', project_id)
    .where('status', '!=', 'released')
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function insertTrunk(trx: Trx, row: TrunkRow): Promise<void> {
  await trx.insertInto('trunk').values(row).execute()
}

/** Saves columns of a trunk. Returns it at its next revision. Every write at or below a trunk goes through here. */
export async function saveTrunk(
  trx: Trx,
  trunk: TrunkRow,
  changes: Partial<Omit<TrunkRow, 'id' | 'project_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<TrunkRow> {
  const columns: Partial<TrunkRow> = { revision: trunk.revision + 1, updated_at: now }
  // Setting a column writes two pages of its index, even if the value is unchanged.
  for (const [name, value] of Object.entries(changes) as [keyof typeof changes, never][])
    if (value !== trunk[name]) columns[name] = value
  await queueWrite(trx, updateOf('trunk', columns, trunk.id))
  return Object.assign({}, trunk, columns)
}

export const listSources = (db: Db, trunk_id: string): Promise<SourceRow[]> =>
  db
    .selectFrom('trunk_source')
    .selectAll()
    .where('trunk_id', '=', trunk_id)
    .orderBy('selector_precedence')
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export const listTargets = (db: Db, trunk_id: string): Promise<TargetRow[]> =>
  db
    .selectFrom('termination_target')
    .selectAll()
    .where('trunk_id', '=', trunk_id)
    .orderBy('priority')
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export const listCredentials = (db: Db, trunk_id: string): Promise<CredentialRow[]> =>
  db
    .selectFrom('digest_credential')
    .selectAll()
    .where('trunk_id', '=', trunk_id)
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export async function insertSources(trx: Trx, rows: readonly SourceRow[]): Promise<void> {
  if (rows.length > 0)
    await trx
      .insertInto('trunk_source')
      .values(rows.map(row => ({ ...row, range_key: keyOf(row) })))
      .execute()
}

export async function updateSource(
  trx: Trx,
  id: string,
  changes: Partial<Pick<SourceRow, 'cidr' | 'enabled' | 'selector_precedence' | 'standing'>>,
): Promise<void> {
  const { cidr } = changes
  const columns = cidr === undefined ? changes : { ...changes, range_key: keyOf({ cidr }) }
  await trx.updateTable('trunk_source').set(columns).where('id', '=', id).execute()
}

/** Returns the range's key; empty for an invalid range, which matches nothing. */
const keyOf = ({ cidr }: Pick<SourceRow, 'cidr'>): string => rangeKey(cidr) ?? ''

export async function deleteSource(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('trunk_source').where('id', '=', id).execute()
}

export async function insertTargets(trx: Trx, rows: readonly TargetRow[]): Promise<void> {
  if (rows.length > 0)
    await trx
      .insertInto('termination_target')
      .values([...rows])
      .execute()
}

export async function updateTarget(
  trx: Trx,
  id: string,
  changes: Pick<
    TargetRow,
    | 'sip_uri'
    | 'transport'
    | 'priority'
    | 'weight'
    | 'enabled'
    | 'tls_verification'
    | 'tls_fingerprint'
    | 'redirects'
    | 'digest_username'
    | 'digest_password_sealed'
    | 'updated_at'
  >,
): Promise<void> {
  await trx.updateTable('termination_target').set(changes).where('id', '=', id).execute()
}

export async function deleteTarget(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('termination_target').where('id', '=', id).execute()
}

export async function insertCredential(trx: Trx, row: CredentialRow): Promise<void> {
  await trx.insertInto('digest_credential').values(row).execute()
}

export async function updateCredential(
  db: Db,
  id: string,
  changes: Partial<
    Pick<CredentialRow, 'enabled' | 'revoked_at' | 'previous_retires_at' | 'valid_until' | 'new_applied_at'>
  >,
): Promise<void> {
  await db.updateTable('digest_credential').set(changes).where('id', '=', id).execute()
}

/** Reports whether a credential of any trunk has this username and realm, which must be unique. */
export async function credentialNameTaken(db: Db, username: string, realm: string): Promise<boolean> {
  const row = await db
    .selectFrom('digest_credential')
    .select('id')
    .where('username', '=', username)
    .where('realm', '=', realm)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Finds a trunk of the same tenant with which the source would be ambiguous: it authenticates by address and has a
 * source with the same range and precedence.
 */
export const ambiguousSource = (
  db: Db,
  source: { readonly cidr: string; readonly selector_precedence: number },
  trunk: Pick<TrunkRow, 'id' | 'project_id' | 'subaccount_id'>,
): Promise<{ id: string; name: string } | undefined> =>
  db
    .selectFrom('trunk_source')
    .innerJoin('trunk', 'trunk.id', 'trunk_source.trunk_id')
    .select(['trunk.id', 'trunk.name'])
    .where('trunk_source.range_key', '=', keyOf(source))
    .where('trunk_source.selector_precedence', '=', source.selector_precedence)
    .where('trunk.id', '!=', trunk.id)
    .where('trunk.project_id', '=', trunk.project_id)
    .where('trunk.subaccount_id', trunk.subaccount_id === null ? 'is' : '=', trunk.subaccount_id)
    .where('trunk.auth_mode', '=', 'ip_allow_list')
    .where('trunk.status', 'not in', ['releasing', 'released'])
    .executeTakeFirst()

/** Reads the figures of trunks in a few queries, however many trunks there are. */
export async function trunkFigures(db: Db, trunk_ids: readonly string[]): Promise<Map<string, TrunkFigures>> {
  const figures = new Map<string, TrunkFigures>()
  for (const id of trunk_ids) figures.set(id, { ...NO_TRUNK_FIGURES })
  const note = (id: string | null, change: Partial<TrunkFigures>): void => {
    const figure = id === null ? undefined : figures.get(id)
    if (figure) Object.assign(figure, change)
  }
  for (const ids of slices(trunk_ids)) {
    for (const [id, live_calls] of await countLiveCalls(db, 'trunk', ids)) note(id, { live_calls })
    const numbers = await db
      .selectFrom('number')
      .select(['route_id', eb => eb.fn.countAll<number>().as('count')])
      .where('route_kind', '=', 'trunk')
      .where('route_id', 'in', ids)
      .groupBy('route_id')
      .execute()
    for (const row of numbers) note(row.route_id, { numbers: Number(row.count) })
    const targets = await db
      .selectFrom('termination_target')
      .select(['trunk_id', eb => eb.fn.countAll<number>().as('count')])
      .where('trunk_id', 'in', ids)
      .groupBy('trunk_id')
      .execute()
    for (const row of targets) note(row.trunk_id, { targets: Number(row.count) })
    const silent = await db
      .selectFrom('target_evidence')
      .innerJoin('termination_target', 'termination_target.id', 'target_evidence.target_id')
      .select(['trunk_id', eb => eb.fn.count<number>('target_id').distinct().as('count')])
      .where('trunk_id', 'in', ids)
      .where('termination_target.enabled', '=', 1)
      .where('target_evidence.state', '=', 'degraded')
      .groupBy('trunk_id')
      .execute()
    for (const row of silent) note(row.trunk_id, { targets_silent: Number(row.count) })
    const subaccounts = await db
      .selectFrom('trunk')
      .innerJoin('subaccount', 'subaccount.id', 'trunk.subaccount_id')
      .select(['trunk.id', 'subaccount.name'])
      .where('trunk.id', 'in', ids)
      .execute()
    for (const row of subaccounts) note(row.id, { subaccount_name: row.name })
    for (const { service_id, ...policy } of await policiesOf(db, ids)) note(service_id, { policy })
  }
  return figures
}

const policiesOf = (db: Db, trunk_ids: readonly string[]): Promise<(AttachedPolicy & { service_id: string })[]> =>
  db
    .selectFrom('policy_attachment')
    .innerJoin('outbound_policy', 'outbound_policy.id', 'policy_attachment.policy_id')
    .select([
      'policy_attachment.service_id',
      'outbound_policy.id',
      'outbound_policy.name',
      'outbound_policy.revision',
      'outbound_policy.daily_spend_limit_minor',
      'outbound_policy.max_destination_rate_minor',
    ])
    .where('policy_attachment.service_type', '=', 'trunk')
    .where('policy_attachment.service_id', 'in', trunk_ids)
    .execute()

// SQLite accepts 32,766 parameters per statement, PostgreSQL 65,535.
const SLICE = 5000
function slices<T>(items: readonly T[]): T[][] {
  const parts: T[][] = []
  for (let at = 0; at < items.length; at += SLICE) parts.push(items.slice(at, at + SLICE))
  return parts
}

/** A trunk's inventory: the numbers routed to it, those delegated to its subtrunks, and those that rest. */
export interface TrunkNumbers {
  readonly routed: number
  readonly first: string | null
  readonly last: string | null
  readonly quarantined: number
  readonly quarantined_until: string | null
  /** By subtrunk, in the order of their names. */
  readonly delegated: readonly { readonly name: string; readonly count: number }[]
}

/** Describes what prevents the release of a trunk; null when nothing does. */
export async function trunkReferences(db: Db, trunk_id: string): Promise<string | null> {
  const live = (await countLiveCalls(db, 'trunk', [trunk_id])).get(trunk_id) ?? 0
  if (live > 0) return `${counted(live, 'call')} in progress`
  const numbers = await db
    .selectFrom('number')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('route_kind', '=', 'trunk')
    .where('route_id', '=', trunk_id)
    .executeTakeFirstOrThrow()
  if (Number(numbers.count) > 0) return `${counted(Number(numbers.count), 'number')} routed to it`
  const subtrunks = await db
    .selectFrom('subtrunk')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('trunk_id', '=', trunk_id)
    .where('status', '!=', 'released')
    .executeTakeFirstOrThrow()
  return Number(subtrunks.count) > 0 ? `${subtrunks.count} subtrunks` : null
}

/** A literal, because a bound value would not use the partial index of these rows. */
export const RELEASING = sql.lit<'releasing'>('releasing')

/** Returns trunks that are being released. */
export async function releasingTrunks(db: Db): Promise<readonly TrunkRow[]> {
  const [rows] = await readTogether(db, RELEASED_NEXT({}))
  return rows
}

const RELEASED_NEXT = statement(db => db.selectFrom('trunk').selectAll().where('status', '=', RELEASING).limit(500))

/** Completes a release. The row stays for call records; the trunk's sources, credentials and targets are deleted. */
export async function releaseTrunk(trx: Trx, trunk: TrunkRow, now: string): Promise<void> {
  await saveTrunk(trx, trunk, { status: 'released' }, now)
  await trx.deleteFrom('trunk_source').where('trunk_id', '=', trunk.id).execute()
  await trx.deleteFrom('termination_target').where('trunk_id', '=', trunk.id).execute()
  await trx.deleteFrom('digest_credential').where('trunk_id', '=', trunk.id).execute()
  await trx.deleteFrom('digest_proof').where('trunk_id', '=', trunk.id).execute()
}

/** Returns credentials of rotations that not all nodes have applied yet. */
export async function unappliedCredentials(db: Db): Promise<readonly CredentialRow[]> {
  const [rows] = await readTogether(db, UNAPPLIED_CREDENTIALS({}))
  return rows
}

const UNAPPLIED_CREDENTIALS = statement(db =>
  db
    .selectFrom('digest_credential')
    .selectAll()
    .where('new_applied_at', 'is', null)
    .where('revoked_at', 'is', null)
    .limit(500),
)
