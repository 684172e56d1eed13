import { sql } from 'kysely'
import { beginOf, STEPS_MS, stepOf, type Window, windowBegin } from '../../domain/metrics/index.ts'
import type { Db } from '../db.ts'

/** How many calls a project had at once, by minute and hour. A sampler counts the live calls every few seconds. */

export const LOAD_KEY = ['project_id', 'step_ms', 'begin_ms'] as const

interface LoadStep {
  readonly begin_ms: number
  /** The most calls that a sample found. */
  readonly most_calls: number
  /** Calls times milliseconds. Divided by the step's length, it is the mean number of calls at once. */
  readonly call_ms: number
}

/** Adds a sample of all projects with live calls. It stands for the `since_ms` milliseconds before `now_ms`. */
export async function addLoadSample(db: Db, now_ms: number, since_ms: number): Promise<void> {
  const found = await db
    .selectFrom('call')
    .select(eb => ['project_id', eb.fn.countAll<number>().as('calls')])
    .where('ended_at', 'is', null)
    .groupBy('project_id')
    .orderBy('project_id')
    .execute()
  if (found.length === 0) return
  const rows = STEPS_MS.flatMap(step_ms =>
    found.map(({ project_id, calls }) => ({
      project_id,
      step_ms,
      begin_ms: beginOf(now_ms, step_ms),
      most_calls: Number(calls),
      call_ms: Number(calls) * since_ms,
    })),
  )
  await db
    .insertInto('project_load')
    .values(rows)
    .onConflict(of =>
      of.columns(LOAD_KEY).doUpdateSet({
        most_calls: sql`case when excluded.most_calls > project_load.most_calls
          then excluded.most_calls else project_load.most_calls end`,
        call_ms: sql`project_load.call_ms + excluded.call_ms`,
      }),
    )
    .execute()
}

/** Returns the steps of a window that ends now, oldest first. Omits steps without live calls. */
export async function projectLoad(db: Db, project_id: string, window: Window, now_ms: number): Promise<LoadStep[]> {
  const rows = await db
    .selectFrom('project_load')
    .select(['begin_ms', 'most_calls', 'call_ms'])
    .where('project_id', '=', project_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .orderBy('begin_ms')
    .execute()
  return rows.map(row => ({
    begin_ms: Number(row.begin_ms),
    most_calls: Number(row.most_calls),
    call_ms: Number(row.call_ms),
  }))
}
