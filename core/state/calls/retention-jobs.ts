import type { Insertable, Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { Db, RetentionJobTable, Trx } from '../db.ts'
import type { State } from '../index.ts'

/** Jobs that change the retention of existing recordings. */

export type RetentionJobRow = Selectable<RetentionJobTable>

/** Selects the finished recordings of a project, which a job processes. */
const finished = (db: Db | Trx, project_id: string) =>
  db.selectFrom('recording').where('project_id', '=', project_id).where('status', '=', 'completed')

export async function countKeptRecordings(db: Db | Trx, project_id: string): Promise<number> {
  const { count } = await finished(db, project_id)
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const insertRetentionJob = (trx: Trx, job: Insertable<RetentionJobTable>): Promise<RetentionJobRow> =>
  trx.insertInto('retention_job').values(job).returningAll().executeTakeFirstOrThrow()

export const findRetentionJob = (db: Db | Trx, project_id: string, id: string): Promise<RetentionJobRow | undefined> =>
  db
    .selectFrom('retention_job')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .executeTakeFirst()

/** Lists the jobs of a project, newest first. */
export function listRetentionJobs(
  db: Db | Trx,
  project_id: string,
  page: { readonly limit: number; readonly before?: number },
): Promise<RetentionJobRow[]> {
  const query = db
    .selectFrom('retention_job')
    .selectAll()
    .where('project_id', '=', project_id)
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

export const runningRetentionJobs = (db: Db | Trx): Promise<RetentionJobRow[]> =>
  db.selectFrom('retention_job').selectAll().where('state', '=', 'running').orderBy('position').limit(50).execute()

const BATCH = 200
const DAY_MS = 86_400_000

/**
 * Processes one batch of a job and stores its progress in the same transaction: a crash loses and repeats nothing.
 * Returns false when the job is finished.
 */
export const stepRetentionJob = (state: State, id: string, now_ms: number): Promise<boolean> =>
  state.transaction(async trx => {
    const job = await trx.selectFrom('retention_job').selectAll().where('id', '=', id).executeTakeFirst()
    if (job?.state !== 'running') return false
    const rows = await finished(trx, job.project_id)
      .select(['sid', 'created_at'])
      .where(eb =>
        eb.or([
          eb('created_at', '>', job.after_created_at),
          eb.and([eb('created_at', '=', job.after_created_at), eb('sid', '>', job.after_sid)]),
        ]),
      )
      .orderBy('created_at')
      .orderBy('sid')
      .limit(BATCH)
      .execute()
    for (const { sid, created_at } of rows)
      await setRetention(trx, { sid, created_at }, job.retention_days, iso(now_ms))
    const last = rows.at(-1)
    const over = rows.length < BATCH
    const done = job.done + rows.length
    await trx
      .updateTable('retention_job')
      .set({
        done,
        // The job also processes recordings that finish while it runs.
        total: Math.max(job.total, done),
        updated_at: iso(now_ms),
        ...(last ? { after_created_at: last.created_at, after_sid: last.sid } : {}),
        ...(over ? { state: 'completed' as const, finished_at: iso(now_ms), total: done } : {}),
      })
      .where('id', '=', id)
      .execute()
    return !over
  })

/** Sets a recording's retention in days from its creation. Returns when it expires. */
export async function setRetention(
  trx: Trx,
  recording: { readonly sid: string; readonly created_at: string },
  days: number,
  now: string,
): Promise<string> {
  const expires_at = iso(Date.parse(recording.created_at) + days * DAY_MS)
  await trx
    .updateTable('recording')
    .set({ expires_at, updated_at: now })
    .where('sid', '=', recording.sid)
    .where('status', '=', 'completed')
    .execute()
  return expires_at
}
