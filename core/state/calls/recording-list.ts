import type { Selectable } from 'kysely'
import type { Db, RecordingTable, Trx } from '../db.ts'

type RecordingRow = Selectable<RecordingTable>

interface RecordingFilter {
  readonly call_id?: string
  readonly status?: RecordingTable['status']
  /** Bounds of `created_at`: `since` is inclusive, `before` exclusive. */
  readonly since?: string
  readonly before?: string
  readonly subaccount_id?: string
}

/** Lists a project's recordings that are not deleted, newest first. `older_than` is the previous page's last one. */
export function listProjectRecordings(
  db: Db,
  project_id: string,
  filter: RecordingFilter,
  page: { readonly limit: number; readonly older_than?: { readonly created_at: string; readonly sid: string } },
): Promise<RecordingRow[]> {
  let query = db
    .selectFrom('recording')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('status', 'not in', ['deleted', 'absent'])
    .orderBy('created_at', 'desc')
    .orderBy('sid', 'desc')
    .limit(page.limit)
  const { call_id, status, since, before, subaccount_id } = filter
  const { older_than } = page
  if (older_than)
    query = query.where(eb =>
      eb.or([
        eb('created_at', '<', older_than.created_at),
        eb.and([eb('created_at', '=', older_than.created_at), eb('sid', '<', older_than.sid)]),
      ]),
    )
  if (call_id !== undefined) query = query.where('call_sid', '=', call_id)
  if (status !== undefined) query = query.where('status', '=', status)
  if (since !== undefined) query = query.where('created_at', '>=', since)
  if (before !== undefined) query = query.where('created_at', '<', before)
  if (subaccount_id !== undefined)
    query = query.where('call_sid', 'in', eb =>
      eb
        .selectFrom('call')
        .innerJoin('trunk', 'trunk.id', 'call.trunk_id')
        .select('call.sid')
        .where('trunk.subaccount_id', '=', subaccount_id),
    )
  return query.execute()
}

/** Marks a recording as deleted. The storage task removes its file. */
export async function deleteRecording(trx: Trx, sid: string, now: string): Promise<void> {
  await trx.updateTable('recording').set({ status: 'deleted', updated_at: now }).where('sid', '=', sid).execute()
}
