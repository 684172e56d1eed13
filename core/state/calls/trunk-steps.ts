import { sql } from 'kysely'
import {
  beginOf,
  type FailureCount,
  FIGURE_NAMES,
  type Figures,
  KEPT_MS,
  STEPS_MS,
  stepOf,
  TOP_FAILURES,
  type Window,
  windowBegin,
} from '../../domain/metrics/index.ts'
import type { Db } from '../db.ts'
import { CARRIER_KEY } from '../procedures/running/carrier-media.ts'
import { FAILURE_KEY, KEY } from '../procedures/running/counts.ts'
import { LOAD_KEY } from './project-load.ts'

/** Figures of a trunk's calls by minute and hour. The end of each call updates them; reads do not touch the calls. */

/** Sums the figures of a window that ends now and begins at a whole minute (1h) or hour. */
export async function figuresOfWindow(db: Db, trunk_id: string, window: Window, now_ms: number): Promise<Figures> {
  const row = await db
    .selectFrom('trunk_step')
    .select(FIGURE_NAMES.map(name => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`.as(name)))
    .where('trunk_id', '=', trunk_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .executeTakeFirstOrThrow()
  return Object.fromEntries(FIGURE_NAMES.map(name => [name, Number(row[name])])) as Record<keyof Figures, number>
}

/** Returns the most frequent failure reasons of a window. */
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

/** Deletes steps that no window reads any more, a bounded number at a time. */
export async function forgetOldSteps(db: Db, now_ms: number, limit = 5000): Promise<void> {
  for (const step_ms of STEPS_MS)
    for (const [name, columns] of [
      ['trunk_step', KEY],
      ['carrier_media_step', CARRIER_KEY],
      ['project_load', LOAD_KEY],
      ['trunk_step_failure', FAILURE_KEY],
    ] as const) {
      const table = sql.table(name)
      const key = sql.join(columns.map(column => sql.ref(column)))
      const before = beginOf(now_ms - KEPT_MS[step_ms], step_ms)
      await sql`delete from ${table} where (${key}) in (
        select ${key} from ${table} where step_ms = ${step_ms} and begin_ms < ${before} limit ${limit})`.execute(db)
    }
}
