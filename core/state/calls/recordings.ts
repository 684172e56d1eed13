import { join } from 'node:path'
import type { Insertable, Selectable, Updateable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, RecordingTable, Trx } from '../db.ts'

type RecordingRow = Selectable<RecordingTable>

/** The path of a new recording below the data folder. */
export const recordingFile = (sid: string, started_ms: number): string =>
  join('recordings', iso(started_ms).slice(0, 10), `${sid}.wav`)

export const insertRecording = (
  trx: Db | Trx,
  recording: Omit<
    Insertable<RecordingTable>,
    'created_at' | 'updated_at' | 'started_at' | 'duration_ms' | 'bytes' | 'sha256' | 'error_number' | 'status'
  >,
  now_ms: number,
): Promise<RecordingRow> => {
  const at = iso(now_ms)
  return trx
    .insertInto('recording')
    .values({
      ...recording,
      status: 'in-progress',
      started_at: at,
      duration_ms: null,
      bytes: null,
      sha256: null,
      error_number: null,
      created_at: at,
      updated_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Updates a recording that is not final yet. Returns undefined when it is final. */
export const updateRecording = (
  trx: Db | Trx,
  sid: string,
  changes: Updateable<RecordingTable>,
  now_ms: number,
): Promise<RecordingRow | undefined> =>
  trx
    .updateTable('recording')
    .set({ ...changes, updated_at: iso(now_ms) })
    .where('sid', '=', sid)
    .where('status', 'in', ['in-progress', 'paused', 'stopped', 'processing'])
    .returningAll()
    .executeTakeFirst()

/**
 * Returns unfinished recordings of ended calls: a media worker or node was lost. Only the machine that has a file can
 * finish it, whoever ran the call. Files of no known machine are anybody's, but for calls of other live nodes, whose
 * workers may still be closing them.
 */
export const unfinishedRecordings = (
  db: Db | Trx,
  { node_id, machine_id }: { readonly node_id: string; readonly machine_id: string },
): Promise<RecordingRow[]> =>
  db
    .selectFrom('recording')
    .innerJoin('call', 'call.sid', 'recording.call_sid')
    .selectAll('recording')
    .leftJoin('node', 'node.id', 'call.node_id')
    .leftJoin('machine', 'machine.id', 'recording.machine_id')
    .where('call.ended_at', 'is not', null)
    .where('recording.status', 'in', ['in-progress', 'paused', 'stopped', 'processing'])
    .where(eb =>
      eb.or([
        eb('recording.machine_id', '=', machine_id),
        eb.and([eb('machine.id', 'is', null), eb.or([eb('node.id', 'is', null), eb('node.id', '=', node_id)])]),
      ]),
    )
    .limit(1000)
    .execute()
