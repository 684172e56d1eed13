import type { Selectable } from 'kysely'
import type { Db, RecordingTable, Trx } from '../db.ts'

type RecordingRow = Selectable<RecordingTable>

/** Who spoke in a recording: the numbers of its call, null when the call's row is gone. */
export interface Parties {
  readonly from_number: string | null
  readonly to_number: string | null
}

export interface RecordingFilter {
  readonly call_id?: string
  readonly conference_id?: string
  readonly status?: RecordingTable['status']
  /** Bounds of `created_at`: `since` is inclusive, `before` exclusive. */
  readonly since?: string
  readonly before?: string
  readonly subaccount_id?: string
}

/** A recording by its place in the list. */
interface Place {
  readonly created_at: string
  readonly sid: string
}

/** Lists a project's recordings that are not deleted, newest first: from an offset, or those next to a place. */
export async function listProjectRecordings(
  db: Db,
  project_id: string,
  filter: RecordingFilter,
  page: {
    readonly limit: number
    readonly offset?: number
    readonly older_than?: Place
    readonly newer_than?: Place
  },
): Promise<(RecordingRow & Parties)[]> {
  const { offset, older_than, newer_than } = page
  const place = older_than ?? newer_than
  const [order, beyond] = newer_than ? (['asc', '>'] as const) : (['desc', '<'] as const)
  let query = db
    .selectFrom('recording')
    .leftJoin('call', 'call.sid', 'recording.call_sid')
    .selectAll('recording')
    .select(['call.from_number', 'call.to_number'])
    .where('recording.project_id', '=', project_id)
    .where('recording.status', 'not in', ['deleted', 'absent'])
    .orderBy('recording.created_at', order)
    .orderBy('recording.sid', order)
    .limit(page.limit)
  const { call_id, status, since, before, subaccount_id } = filter
  if (offset !== undefined) query = query.offset(offset)
  if (place)
    query = query.where(eb =>
      eb.or([
        eb('recording.created_at', beyond, place.created_at),
        eb.and([eb('recording.created_at', '=', place.created_at), eb('recording.sid', beyond, place.sid)]),
      ]),
    )
  if (call_id !== undefined) query = query.where('recording.call_sid', '=', call_id)
  if (filter.conference_id !== undefined) query = query.where('recording.conference_sid', '=', filter.conference_id)
  if (status !== undefined) query = query.where('recording.status', '=', status)
  if (since !== undefined) query = query.where('recording.created_at', '>=', since)
  if (before !== undefined) query = query.where('recording.created_at', '<', before)
  if (subaccount_id !== undefined)
    query = query.where('recording.call_sid', 'in', eb =>
      eb
        .selectFrom('call as own')
        .innerJoin('trunk', 'trunk.id', 'own.trunk_id')
        .select('own.sid')
        .where('trunk.subaccount_id', '=', subaccount_id),
    )
  const rows = await query.execute()
  return newer_than ? rows.reverse() : rows
}

export const partiesOf = (db: Db | Trx, call_sid: string): Promise<Parties | undefined> =>
  db.selectFrom('call').select(['from_number', 'to_number']).where('sid', '=', call_sid).executeTakeFirst()

/** Marks a recording as deleted. The storage task removes its file. */
export async function deleteRecording(trx: Trx, sid: string, now: string): Promise<void> {
  await trx.updateTable('recording').set({ status: 'deleted', updated_at: now }).where('sid', '=', sid).execute()
}
