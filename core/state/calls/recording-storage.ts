import { type Selectable, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, RecordingTable, Trx } from '../db.ts'
import { queueEvent, queueEvents } from '../delivery/webhook-endpoints.ts'
import type { State } from '../index.ts'
import { writeInParts } from '../maintenance/parts.ts'

/** Storage of finished recordings: their files are sealed, retained, then deleted. */

type RecordingRow = Selectable<RecordingTable>

/** Suffix of an encrypted file's name. */
export const SEALED = '.sealed'

/** Prefix of the name of a file in the object store. The rest is its key. */
const STORED = 's3:'

/** Returns the key of a recording's file in the object store; null when the file is in the data folder. */
export const objectKey = (file: string): string | null => (file.startsWith(STORED) ? file.slice(STORED.length) : null)

/** A recording and its file. */
type FileRow = Pick<RecordingRow, 'sid' | 'file'>

/** Returns encrypted recordings of a machine that are not in the object store yet, oldest first. */
export async function unstoredRecordings(db: Db, machine_id: string, limit: number): Promise<FileRow[]> {
  const { rows } = await sql<FileRow>`
    select sid, file from recording where status = 'completed' and file like 'recordings/%.sealed'
    and machine_id in ('', ${machine_id})
    order by created_at limit ${limit}`.execute(db)
  return rows
}

/** Points the row at the object whose key is the file's name. Returns false when it was deleted meanwhile. */
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

/** Returns finished recordings of a machine whose file is not encrypted yet. */
export async function plainRecordings(db: Db, machine_id: string, limit: number): Promise<FileRow[]> {
  const { rows } = await sql<FileRow>`
    select sid, file from recording where status = 'completed' and file not like '%.sealed'
    and machine_id in ('', ${machine_id}) limit ${limit}`.execute(db)
  return rows
}

/**
 * Points the row at the encrypted file and queues one `recording.completed` event. Returns false when the recording was
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

/** Returns encrypted recordings of a machine since `since_ms`: after a crash their unencrypted file may still exist. */
export const recentlySealed = (db: Db, machine_id: string, since_ms: number): Promise<Pick<RecordingRow, 'file'>[]> =>
  db
    .selectFrom('recording')
    .select('file')
    .where('file', 'like', `%${SEALED}`)
    .where('machine_id', 'in', ['', machine_id])
    .where('created_at', '>', iso(since_ms))
    .execute()

/** Retention in days without a policy. It is the longest that a policy can set. */
const DEFAULT_RETENTION_DAYS = 365
const DAY_MS = 86_400_000

/**
 * Sets the expiry of recordings that have none: the retention of the call's recording policy, or the default. Returns
 * their number.
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

/** The most recordings of a transaction: each has an event, which takes several statements. */
const EXPIRED_AT_ONCE = 50

/**
 * Deletes expired recordings and queues their webhook events, some in each transaction: a retention job makes all of a
 * project expire at once, and calls wait for none of them. Returns their number. A later step removes the files.
 */
export async function expireRecordings(state: State, now_ms: number, goesOn?: () => boolean): Promise<number> {
  let expired = 0
  const part = async (trx: Trx, rows: number): Promise<boolean> => {
    const most = Math.min(rows, EXPIRED_AT_ONCE)
    const old = await trx
      .selectFrom('recording')
      .select(['sid', 'project_id', 'call_sid'])
      // Literal, as in the partial index of expiries.
      .where('status', '=', sql.lit('completed'))
      .where('expires_at', '<=', iso(now_ms))
      .orderBy('expires_at')
      .limit(most)
      .execute()
    if (old.length === 0) return false
    const events = old.map(({ sid, project_id, call_sid }) => {
      const data = { id: sid, name: `Recording of ${call_sid}`, summary: 'Its retention period has ended' }
      return { project_id, kind: 'recording.deleted', data }
    })
    await queueEvents(trx, events, now_ms)
    await trx
      .updateTable('recording')
      .set({ status: 'deleted', updated_at: iso(now_ms) })
      .where(
        'sid',
        'in',
        old.map(({ sid }) => sid),
      )
      .execute()
    expired += old.length
    return old.length === most
  }
  await writeInParts(state, part, goesOn)
  return expired
}

/** Returns deleted recordings that still have a file in the data folder of a machine, or in the object store. */
export const deletedWithFile = (db: Db, machine_id: string, limit: number): Promise<FileRow[]> =>
  db
    .selectFrom('recording')
    .select(['sid', 'file'])
    .where('status', '=', 'deleted')
    .where('file', '!=', '')
    .where(eb => eb.or([eb('machine_id', 'in', ['', machine_id]), eb('file', 'like', `${STORED}%`)]))
    .limit(limit)
    .execute()

export const fileRemoved = async (db: Db, sid: string): Promise<void> => {
  await db.updateTable('recording').set({ file: '' }).where('sid', '=', sid).where('status', '=', 'deleted').execute()
}

/** Sums the bytes of a project's finished recordings. */
export async function storedBytes(db: Db, project_id: string): Promise<number> {
  const { bytes } = await db
    .selectFrom('recording')
    .select(eb => eb.fn.sum<number | null>('bytes').as('bytes'))
    .where('project_id', '=', project_id)
    .where('status', '=', 'completed')
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}

/** Reports whether another recording of the project may begin. The quota never cuts a running recording. */
export const hasRoomForRecording = async (db: Db, project_id: string, quota_bytes: number | null): Promise<boolean> =>
  quota_bytes === null || (await storedBytes(db, project_id)) < quota_bytes
