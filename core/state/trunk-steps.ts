import { sql } from 'kysely'
import {
  beginOf,
  type EndedCall,
  type FailureCount,
  FIGURE_NAMES,
  type Figures,
  failureOfCall,
  figuresOfCall,
  KEPT_MS,
  STEPS_MS,
  stepOf,
  TOP_FAILURES,
  type Window,
  windowBegin,
} from '../domain/metrics/index.ts'
import { later } from './batch.ts'
import type { CdrTable, Db, Trx } from './index.ts'

/** What a trunk's calls came to, by minute and by hour: written as each call ends, read without looking at any call. */

type Ended = EndedCall & Pick<CdrTable, 'project_id' | 'trunk_id' | 'origin' | 'ended_at'>

const KEY = ['trunk_id', 'step_ms', 'begin_ms'] as const
const rowsOf = (columns: number): string =>
  STEPS_MS.map(() => `(${Array.from({ length: columns }, () => '?').join(', ')})`).join(', ')

// Written out, because each ended call runs both: sums are added to, whatever the call has of them.
const ADD_FIGURES = `insert into trunk_step (${[...KEY, ...FIGURE_NAMES].join(', ')})
  values ${rowsOf(KEY.length + FIGURE_NAMES.length)} on conflict (${KEY.join(', ')}) do update
  set ${FIGURE_NAMES.map(name => `${name} = trunk_step.${name} + excluded.${name}`).join(', ')}`
const FAILURE_KEY = [...KEY, 'platform_reason', 'sip_code']
const ADD_FAILURE = `insert into trunk_step_failure (${[...FAILURE_KEY, 'calls'].join(', ')})
  values ${rowsOf(FAILURE_KEY.length + 1)} on conflict (${FAILURE_KEY.join(', ')}) do update
  set calls = trunk_step_failure.calls + 1`

/** Adds an ended call to its trunk's steps, in the transaction that writes its record. Test calls do not count. */
export async function countEndedCall(trx: Trx, call: Ended): Promise<void> {
  if (call.origin === 'test') return
  // Calls that no trunk carried (of the API, of browsers) are summed under their project's id.
  const trunk_id = call.trunk_id ?? call.project_id
  const ended_ms = Date.parse(call.ended_at)
  const steps = STEPS_MS.map(step_ms => [trunk_id, step_ms, beginOf(ended_ms, step_ms)])
  const figures = figuresOfCall(call)
  const values = FIGURE_NAMES.map(name => figures[name])
  await later(trx, { sql: ADD_FIGURES, parameters: steps.flatMap(step => [...step, ...values]) })
  const failure = failureOfCall(call)
  if (!failure) return
  const { platform_reason, sip_code } = failure
  const parameters = steps.flatMap(step => [...step, platform_reason, sip_code ?? 0, 1])
  await later(trx, { sql: ADD_FAILURE, parameters })
}

/** Sums of a window that ends now; it begins with a whole minute (1h) or hour. */
export async function figuresOfWindow(db: Db, trunk_id: string, window: Window, now_ms: number): Promise<Figures> {
  const row = await db
    .selectFrom('trunk_step')
    .select(FIGURE_NAMES.map(name => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`.as(name)))
    .where('trunk_id', '=', trunk_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .executeTakeFirstOrThrow()
  return Object.fromEntries(FIGURE_NAMES.map(name => [name, Number(row[name])])) as unknown as Figures
}

/** The most frequent reasons of a window. */
export async function failuresOfWindow(
  db: Db,
  trunk_id: string,
  window: Window,
  now_ms: number,
): Promise<FailureCount[]> {
  const rows = await db
    .selectFrom('trunk_step_failure')
    .select(['platform_reason', 'sip_code', eb => eb.fn.sum<number>('calls').as('calls')])
    .where('trunk_id', '=', trunk_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .groupBy(['platform_reason', 'sip_code'])
    .orderBy('calls', 'desc')
    .orderBy('platform_reason')
    .orderBy('sip_code')
    .limit(TOP_FAILURES)
    .execute()
  return rows.map(row => ({ ...row, sip_code: row.sip_code === 0 ? null : row.sip_code, calls: Number(row.calls) }))
}

/** Forgets steps that no window reads any more; a bounded number at a time. */
export async function forgetOldSteps(db: Db, now_ms: number, limit = 5000): Promise<void> {
  for (const step_ms of STEPS_MS)
    for (const [name, columns] of [
      ['trunk_step', KEY],
      ['trunk_step_failure', FAILURE_KEY],
    ] as const) {
      const table = sql.table(name)
      const key = sql.join(columns.map(column => sql.ref(column)))
      const before = beginOf(now_ms - KEPT_MS[step_ms], step_ms)
      await sql`delete from ${table} where (${key}) in (
        select ${key} from ${table} where step_ms = ${step_ms} and begin_ms < ${before} limit ${limit})`.execute(db)
    }
}
