import type { Selectable } from 'kysely'
import { newId } from '../../runtime/ids.ts'
import type { ContainmentReleaseRequestTable, ContainmentTable, Db, Trx } from '../db.ts'

export type ContainmentRow = Selectable<ContainmentTable>
export type ReleaseRequestRow = Selectable<ContainmentReleaseRequestTable>

interface ContainmentFilter {
  readonly trunk_id?: string
  /** Only containments that were in force at any time since then. */
  readonly since?: string
}

export function listContainments(
  db: Db | Trx,
  project_id: string,
  filter: ContainmentFilter = {},
): Promise<ContainmentRow[]> {
  let query = db
    .selectFrom('containment')
    .selectAll()
    .where('project_id', '=', project_id)
    .orderBy('starts_at', 'desc')
    .orderBy('id')
    .limit(1000)
  const { trunk_id, since } = filter
  if (trunk_id !== undefined)
    query = query.where(eb => eb.or([eb('trunk_id', '=', trunk_id), eb('trunk_id', 'is', null)]))
  if (since !== undefined)
    query = query
      .where('expires_at', '>', since)
      .where(eb => eb.or([eb('released_at', 'is', null), eb('released_at', '>', since)]))
  return query.execute()
}

export const findContainment = (db: Db | Trx, project_id: string, id: string): Promise<ContainmentRow | undefined> =>
  db.selectFrom('containment').selectAll().where('id', '=', id).where('project_id', '=', project_id).executeTakeFirst()

/** Finds a containment of any project. For operators. */
export const findAnyContainment = (db: Db | Trx, id: string): Promise<ContainmentRow | undefined> =>
  db.selectFrom('containment').selectAll().where('id', '=', id).executeTakeFirst()

/** A position in a list that is sorted by a time, newest first, and by id. */
interface Before {
  readonly at: string
  readonly id: string
}

/** Lists containments of all projects, newest first. For operators. */
export function listAllContainments(
  db: Db | Trx,
  page: {
    readonly limit: number
    readonly before?: Before
    readonly project_id?: string
    /** Only those in force at this time. */
    readonly open_at?: string
  },
): Promise<ContainmentRow[]> {
  let query = db.selectFrom('containment').selectAll().orderBy('starts_at', 'desc').orderBy('id', 'desc')
  const { before, project_id, open_at, limit } = page
  if (project_id !== undefined) query = query.where('project_id', '=', project_id)
  if (open_at !== undefined) query = query.where('released_at', 'is', null).where('expires_at', '>', open_at)
  if (before)
    query = query
      .where('starts_at', '<=', before.at)
      .where(eb => eb.or([eb('starts_at', '<', before.at), eb('id', '<', before.id)]))
  return query.limit(limit).execute()
}

/** Finds a request about a containment of any project. For operators. */
export const findAnyReleaseRequest = (db: Db | Trx, id: string): Promise<ReleaseRequestRow | undefined> =>
  db.selectFrom('containment_release_request').selectAll().where('id', '=', id).executeTakeFirst()

/** Lists requests to open prefixes of all projects, newest first. For operators. */
export function listAllReleaseRequests(
  db: Db | Trx,
  page: { readonly limit: number; readonly before?: Before; readonly state?: ReleaseRequestRow['state'] },
): Promise<ReleaseRequestRow[]> {
  let query = db.selectFrom('containment_release_request').selectAll()
  query = query.orderBy('requested_at', 'desc').orderBy('id', 'desc')
  const { before, state, limit } = page
  if (state !== undefined) query = query.where('state', '=', state)
  if (before)
    query = query
      .where('requested_at', '<=', before.at)
      .where(eb => eb.or([eb('requested_at', '<', before.at), eb('id', '<', before.id)]))
  return query.limit(limit).execute()
}

type NewContainment = Pick<
  ContainmentRow,
  | 'project_id'
  | 'trunk_id'
  | 'prefix'
  | 'case_ref'
  | 'reason_category'
  | 'reason_detail'
  | 'source_alert_id'
  | 'starts_at'
  | 'expires_at'
>

/** Closes a prefix (digits without plus) from the next call on. */
export async function insertContainment(trx: Trx, containment: NewContainment): Promise<ContainmentRow> {
  const row: ContainmentRow = {
    ...containment,
    id: newId.uuid(),
    rejection_count: 0,
    released_at: null,
    released_by: null,
    notified_at: null,
    notified_event: null,
  }
  await trx.insertInto('containment').values(row).execute()
  return row
}

/** Reopens the prefix. Returns undefined when it was already open: released, or expired. */
export const releaseContainment = (
  trx: Trx,
  id: string,
  release: { readonly released_at: string; readonly released_by: string },
): Promise<ContainmentRow | undefined> =>
  trx
    .updateTable('containment')
    .set(release)
    .where('id', '=', id)
    .where('released_at', 'is', null)
    .where('expires_at', '>', release.released_at)
    .returningAll()
    .executeTakeFirst()

/** Notes that the customer was notified. */
export async function markNotified(
  trx: Trx,
  id: string,
  notice: { notified_at: string; notified_event: string },
): Promise<void> {
  await trx.updateTable('containment').set(notice).where('id', '=', id).execute()
}

/** Returns the newest release request of each containment. */
export async function listReleaseRequests(
  db: Db | Trx,
  containment_ids: readonly string[],
): Promise<Map<string, ReleaseRequestRow>> {
  if (containment_ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('containment_release_request')
    .selectAll()
    .where('containment_id', 'in', [...containment_ids])
    .orderBy('requested_at')
    .execute()
  return new Map(rows.map(row => [row.containment_id, row]))
}

/** Requests a release. Returns undefined while an earlier request is pending. */
export async function requestRelease(
  trx: Trx,
  request: Pick<ReleaseRequestRow, 'containment_id' | 'note' | 'requested_at' | 'requested_by'>,
): Promise<ReleaseRequestRow | undefined> {
  const pending = await trx
    .selectFrom('containment_release_request')
    .select('id')
    .where('containment_id', '=', request.containment_id)
    .where('state', '=', 'pending')
    .executeTakeFirst()
  if (pending) return undefined
  const row: ReleaseRequestRow = {
    ...request,
    id: newId.uuid(),
    state: 'pending',
    decision_at: null,
    decision_by: null,
    decision_reason: null,
  }
  await trx.insertInto('containment_release_request').values(row).execute()
  return row
}

/** Decides a pending request. An approval also releases the containment; null when its prefix was already open. */
export async function decideRelease(
  trx: Trx,
  id: string,
  decision: {
    state: 'approved' | 'rejected'
    decision_at: string
    decision_by: string
    decision_reason: string | null
  },
): Promise<{ readonly request: ReleaseRequestRow; readonly released: ContainmentRow | null } | undefined> {
  const request = await trx
    .updateTable('containment_release_request')
    .set(decision)
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .returningAll()
    .executeTakeFirst()
  if (!request) return undefined
  if (decision.state === 'rejected') return { request, released: null }
  const release = { released_at: decision.decision_at, released_by: decision.decision_by }
  return { request, released: (await releaseContainment(trx, request.containment_id, release)) ?? null }
}

/** Lists all release requests of a containment, newest first. */
export const listReleaseRequestsOf = (db: Db | Trx, containment_id: string): Promise<ReleaseRequestRow[]> =>
  db
    .selectFrom('containment_release_request')
    .selectAll()
    .where('containment_id', '=', containment_id)
    .orderBy('requested_at', 'desc')
    .limit(200)
    .execute()
