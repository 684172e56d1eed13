import { type Selectable, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, RecordingTable } from '../db.ts'
import { queueEvent } from '../delivery/webhook-endpoints.ts'
import type { State } from '../index.ts'

/** The storage of finished recordings: files are sealed, retained for their period, then deleted. */

type RecordingRow = Selectable<RecordingTable>

/** Ending of the name of a file that is encrypted. */
export const SEALED = '.sealed'

/** Beginning of the name of a file that is in the object store; the rest is its key. */
const STORED = 's3:'

/** Key of a recording's file in the object store; null when it is in the data folder. */
export const objectKey = (file: string): string | null => (file.startsWith(STORED) ? file.slice(STORED.length) : null)

/** Encrypted recordings that are not in the object store yet, the oldest first. */
export async function unstoredRecordings(db: Db, limit: number): Promise<Pick<RecordingRow, 'sid' | 'file'>[]> {
  const { rows } = await sql<Pick<RecordingRow, 'sid' | 'file'>>`
    select sid, file from recording where status = 'completed' and file like 'recordings/%.sealed'
    order by created_at limit ${limit}`.execute(db)
  return rows
}

/** Points the row at the object with the key that is the file's name; false when it was deleted meanwhile. */
export async function recordingStored(db: Db, sid: string, file: string): Promise<boolean> {
  const row = await db
    .updateTable('recording')
    .set({ file: STORED + file })
    .where('sid', '=', sid)
    .where('file', '=', file)
    .where('status', '=', 'completed')
    .returning('sid')
    .executeTakeFirst()
  return row !== undefined
}

/** Finished recordings whose file is not encrypted yet. */
export async function plainRecordings(db: Db, limit: number): Promise<Pick<RecordingRow, 'sid' | 'file'>[]> {
  const { rows } = await sql<Pick<RecordingRow, 'sid' | 'file'>>`
    select sid, file from recording where status = 'completed' and file not like '%.sealed' limit ${limit}`.execute(db)
  return rows
}

/**
 * Points the row at the encrypted file and tells webhook endpoints that the recording is there, once; false when it was
 * deleted meanwhile.
 */
export const recordingSealed = (state: State, sid: string, plain: string, now_ms: number): Promise<boolean> =>
  state.transaction(async trx => {
    const row = await trx
      .updateTable('recording')
      .set({ file: plain + SEALED })
      .where('sid', '=', sid)
      .where('file', '=', plain)
      .where('status', '=', 'completed')
      .returning(['project_id', 'call_sid', 'channels', 'duration_ms', 'bytes', 'sha256'])
      .executeTakeFirst()
    if (!row) return false
    const { project_id, call_sid, ...facts } = row
    const data = { sid, call_sid, ...facts }
    await queueEvent(trx, { project_id, kind: 'recording.completed', data }, now_ms)
    return true
  })

/** Recordings of the last while, whose unencrypted twin may have outlived a crash. */
export const recentlySealed = (db: Db, since_ms: number): Promise<Pick<RecordingRow, 'file'>[]> =>
  db
    .selectFrom('recording')
    .select('file')
    .where('file', 'like', `%${SEALED}`)
    .where('created_at', '>', iso(since_ms))
    .execute()

/** Days that a recording is kept when no policy says otherwise: the longest that a policy can say. */
const DEFAULT_RETENTION_DAYS = 365
const DAY_MS = 86_400_000

/**
 * Gives recordings without an end of their time one: the retention of the policy that the call ran under, when that
 * policy records, else the default. Returns how many.
 */
export async function dateRecordings(db: Db, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('recording')
    .select(['sid', 'call_sid', 'created_at'])
    .where('status', '=', 'completed')
    .where('expires_at', 'is', null)
    .limit(limit)
    .execute()
  for (const { sid, call_sid, created_at } of rows) {
    const policies = await db
      .selectFrom('lease')
      .innerJoin('outbound_policy', join =>
        join.on(eb =>
          eb.or([
            eb('outbound_policy.id', '=', eb.ref('lease.policy_id')),
            eb('outbound_policy.id', '=', eb.ref('lease.parent_policy_id')),
          ]),
        ),
      )
      .select('outbound_policy.recording_retention_days as days')
      .where('lease.call_sid', '=', call_sid)
      .where('outbound_policy.recording_mode', '=', 'all')
      .execute()
    const days = policies.length === 0 ? DEFAULT_RETENTION_DAYS : Math.max(...policies.map(policy => policy.days))
    await db
      .updateTable('recording')
      .set({ expires_at: iso(Date.parse(created_at) + days * DAY_MS) })
      .where('sid', '=', sid)
      .execute()
  }
  return rows.length
}

/**
 * Deletes recordings whose time is over and tells webhook endpoints. Returns how many; their files go in the next step.
 */
export const expireRecordings = (state: State, now_ms: number): Promise<number> =>
  state.transaction(async trx => {
    const rows = await trx
      .updateTable('recording')
      .set({ status: 'deleted', updated_at: iso(now_ms) })
      .where('status', '=', 'completed')
      .where('expires_at', '<=', iso(now_ms))
      .returning(['sid', 'project_id', 'call_sid'])
      .execute()
    for (const { sid, project_id, call_sid } of rows) {
      const data = { id: sid, name: `Recording of ${call_sid}`, summary: 'Its time to be kept is over' }
      await queueEvent(trx, { project_id, kind: 'recording.deleted', data }, now_ms)
    }
    return rows.length
  })

/** Deleted recordings that still have a file. */
export const deletedWithFile = (db: Db, limit: number): Promise<Pick<RecordingRow, 'sid' | 'file'>[]> =>
  db
    .selectFrom('recording')
    .select(['sid', 'file'])
    .where('status', '=', 'deleted')
    .where('file', '!=', '')
    .limit(limit)
    .execute()

export const fileRemoved = async (db: Db, sid: string): Promise<void> => {
  await db.updateTable('recording').set({ file: '' }).where('sid', '=', sid).where('status', '=', 'deleted').execute()
}

/** Bytes of a project's recordings. */
export async function storedBytes(db: Db, project_id: string): Promise<number> {
  const { bytes } = await db
    .selectFrom('recording')
    .select(eb => eb.fn.sum<number | null>('bytes').as('bytes'))
    .where('project_id', '=', project_id)
    .where('status', '=', 'completed')
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}

/** Whether another recording of the project may begin; what runs already is never cut for space. */
export const hasRoomForRecording = async (db: Db, project_id: string, quota_bytes: number | null): Promise<boolean> =>
  quota_bytes === null || (await storedBytes(db, project_id)) < quota_bytes
