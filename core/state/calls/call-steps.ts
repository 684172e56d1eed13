import { type ExpressionBuilder, sql } from 'kysely'
import {
  beginOf,
  type FailureCount,
  FIGURE_NAMES,
  type Figures,
  KEPT_MS,
  type MetricsWindow,
  STEPS_MS,
  stepOf,
  TOP_FAILURES,
  windowBegin,
} from '../../domain/metrics/index.ts'
import type { Db } from '../db.ts'
import { CARRIER_KEY } from '../procedures/running/carrier-media.ts'
import { FAILURE_KEY, KEY } from '../procedures/running/counts.ts'
import type { Schema } from '../schema/index.ts'
import { LOAD_KEY } from './load-steps.ts'

/** Figures of calls by minute and hour. The end of each call updates them; reads do not touch the calls. */

/** Whose figures: of all of a project's calls, or of a part of them. */
export interface Subject {
  readonly kind: 'project' | 'subaccount' | 'trunk' | 'application'
  readonly id: string
}

/** The ids under which the calls of a subject are summed. A call without a trunk is summed under its project's. */
const isOf =
  ({ kind, id }: Subject) =>
  (eb: ExpressionBuilder<Schema, 'call_step' | 'call_step_failure'>) => {
    if (kind === 'trunk' || kind === 'application') return eb('subject_id', '=', id)
    const trunks = eb
      .selectFrom('trunk')
      .select('trunk.id')
      .where(kind === 'project' ? 'trunk.project_id' : 'trunk.subaccount_id', '=', id)
    const through = eb('subject_id', 'in', trunks)
    return kind === 'project' ? eb.or([eb('subject_id', '=', id), through]) : through
  }

/** Sums of a step of time. */
interface FigureStep {
  readonly begin_ms: number
  readonly figures: Figures
}

/** Returns the steps of a window that ends now, oldest first. Omits steps without calls. */
export async function figureSteps(
  db: Db,
  subject: Subject,
  window: MetricsWindow,
  now_ms: number,
): Promise<FigureStep[]> {
  const rows = await db
    .selectFrom('call_step')
    .select('begin_ms')
    .select(FIGURE_NAMES.map(name => sql<number>`sum(${sql.ref(name)})`.as(name)))
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .where(isOf(subject))
    .groupBy('begin_ms')
    .orderBy('begin_ms')
    .execute()
  return rows.map(row => ({ begin_ms: Number(row.begin_ms), figures: numbersOf(row) }))
}

const numbersOf = (row: Readonly<Record<keyof Figures, number>>): Figures =>
  Object.fromEntries(FIGURE_NAMES.map(name => [name, Number(row[name])])) as Record<keyof Figures, number>

export interface FailureStep {
  readonly begin_ms: number
  readonly platform_reason: string
  readonly calls: number
}

/** Returns how many calls failed for which reason in each step of a window, oldest first. */
export async function failureSteps(
  db: Db,
  subject: Subject,
  window: MetricsWindow,
  now_ms: number,
): Promise<FailureStep[]> {
  const rows = await db
    .selectFrom('call_step_failure')
    .select(['begin_ms', 'platform_reason', eb => eb.fn.sum<number>('calls').as('calls')])
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .where(isOf(subject))
    .groupBy(['begin_ms', 'platform_reason'])
    .orderBy('begin_ms')
    .orderBy('platform_reason')
    .execute()
  return rows.map(row => ({ ...row, begin_ms: Number(row.begin_ms), calls: Number(row.calls) }))
}

/** Sums the figures of a window that ends now and begins at a whole minute (1h) or hour. */
export async function figuresOfWindow(
  db: Db,
  trunk_id: string,
  window: MetricsWindow,
  now_ms: number,
): Promise<Figures> {
  const row = await db
    .selectFrom('call_step')
    .select(FIGURE_NAMES.map(name => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`.as(name)))
    .where('subject_id', '=', trunk_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .executeTakeFirstOrThrow()
  return numbersOf(row)
}

/** Returns the most frequent failure reasons of a window. */
export async function failuresOfWindow(
  db: Db,
  trunk_id: string,
  window: MetricsWindow,
  now_ms: number,
): Promise<FailureCount[]> {
  const rows = await db
    .selectFrom('call_step_failure')
    .select(['platform_reason', 'sip_code', eb => eb.fn.sum<number>('calls').as('calls')])
    .where('subject_id', '=', trunk_id)
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
      ['call_step', KEY],
      ['carrier_media_step', CARRIER_KEY],
      ['load_step', LOAD_KEY],
      ['call_step_failure', FAILURE_KEY],
    ] as const) {
      const table = sql.table(name)
      const key = sql.join(columns.map(column => sql.ref(column)))
      const before = beginOf(now_ms - KEPT_MS[step_ms], step_ms)
      await sql`delete from ${table} where (${key}) in (
        select ${key} from ${table} where step_ms = ${step_ms} and begin_ms < ${before} limit ${limit})`.execute(db)
    }
}
