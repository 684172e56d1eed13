import { sql } from 'kysely'
import { beginOf, type MetricsWindow, STEPS_MS, stepOf, windowBegin } from '../../domain/metrics/index.ts'
import type { Db, LoadStepTable, Trx } from '../db.ts'

/** How many calls a subject had at once, by minute and hour. A sampler counts the live calls every few seconds. */

export const LOAD_KEY = ['subject_id', 'step_ms', 'begin_ms'] as const

interface LoadStep {
  readonly begin_ms: number
  /** The most calls that a sample found. */
  readonly most_calls: number
  /** Calls times milliseconds. Divided by the step's length, it is the mean number of calls at once. */
  readonly call_ms: number
}

/** Rows of a statement. */
const BATCH = 1000

/**
 * Counts the live calls of each project, trunk, application and subaccount that has any. They are read once: read four
 * times, each by the index of what is counted, they would be looked for among all calls.
 */
const LIVE = sql<{ subject_id: string; calls: number }>`
  with live as materialized (
    select c.project_id, c.trunk_id, c.application_id, t.subaccount_id
    from call c left join trunk t on t.id = c.trunk_id where c.ended_at is null
  )
  select project_id as subject_id, count(*) as calls from live group by project_id
  union all select trunk_id, count(*) from live where trunk_id is not null group by trunk_id
  union all select application_id, count(*) from live where application_id is not null group by application_id
  union all select subaccount_id, count(*) from live where subaccount_id is not null group by subaccount_id
  order by 1`

/** Adds a sample of all that has live calls. It stands for the `since_ms` milliseconds before `now_ms`. */
export async function addLoadSample(db: Db | Trx, now_ms: number, since_ms: number): Promise<void> {
  const { rows: found } = await LIVE.execute(db)
  if (found.length === 0) return
  const samples = STEPS_MS.flatMap(step_ms =>
    found.map(({ subject_id, calls }) => ({
      subject_id,
      step_ms,
      begin_ms: beginOf(now_ms, step_ms),
      most_calls: Number(calls),
      call_ms: Number(calls) * since_ms,
    })),
  )
  for (let at = 0; at < samples.length; at += BATCH) await addSamples(db, samples.slice(at, at + BATCH))
}

const addSamples = (db: Db | Trx, samples: readonly LoadStepTable[]): Promise<unknown> =>
  db
    .insertInto('load_step')
    .values([...samples])
    .onConflict(of =>
      of.columns(LOAD_KEY).doUpdateSet({
        most_calls: sql`case when excluded.most_calls > load_step.most_calls
          then excluded.most_calls else load_step.most_calls end`,
        call_ms: sql`load_step.call_ms + excluded.call_ms`,
      }),
    )
    .execute()

/** Returns the steps of a window that ends now, oldest first. Omits steps without live calls. */
export async function loadSteps(
  db: Db,
  subject_id: string,
  window: MetricsWindow,
  now_ms: number,
): Promise<LoadStep[]> {
  const rows = await db
    .selectFrom('load_step')
    .select(['begin_ms', 'most_calls', 'call_ms'])
    .where('subject_id', '=', subject_id)
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
