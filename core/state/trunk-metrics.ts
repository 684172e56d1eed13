import { sql } from 'kysely'
import type { Db } from './index.ts'

/** Figures of a trunk's ended calls; test calls are left out. */
export interface CallFigures {
  readonly attempts: number
  readonly answered: number
  readonly answered_seconds: number
  readonly pdd_ms: number | null
}

export interface FailureFigures {
  readonly calls: number
  readonly platform_reason: string
  readonly sip_code: number | null
}

const ended = (db: Db, trunk_id: string, since: string) =>
  db.selectFrom('cdr').where('trunk_id', '=', trunk_id).where('ended_at', '>=', since).where('origin', '!=', 'test')

/** Attempts, answers, seconds and the mean post-dial delay of the calls that ended since `since`. */
export async function callFigures(db: Db, trunk_id: string, since: string): Promise<CallFigures> {
  const row = await ended(db, trunk_id, since)
    .select([
      eb => eb.fn.countAll<number>().as('attempts'),
      eb => eb.fn.count<number>('answered_at').as('answered'),
      eb => eb.fn.sum<number>('duration_seconds').as('seconds'),
      eb => eb.fn.avg<number>('pdd_ms').as('pdd_ms'),
    ])
    .executeTakeFirstOrThrow()
  return {
    attempts: Number(row.attempts),
    answered: Number(row.answered),
    answered_seconds: Number(row.seconds ?? 0),
    pdd_ms: row.pdd_ms === null ? null : Math.round(Number(row.pdd_ms)),
  }
}

/** Why calls were not answered, the most frequent first. */
export async function topFailures(db: Db, trunk_id: string, since: string, limit: number): Promise<FailureFigures[]> {
  const rows = await ended(db, trunk_id, since)
    .select([
      sql<string>`coalesce(reason, status)`.as('platform_reason'),
      'sip_code',
      eb => eb.fn.countAll<number>().as('calls'),
    ])
    .where('answered_at', 'is', null)
    .groupBy([sql`coalesce(reason, status)`, 'sip_code'])
    .orderBy('calls', 'desc')
    .orderBy('platform_reason')
    .limit(limit)
    .execute()
  return rows.map(row => ({ ...row, calls: Number(row.calls) }))
}

/** The media summaries of answered calls, newest first. */
export const mediaSummaries = (db: Db, trunk_id: string, since: string, limit: number) =>
  ended(db, trunk_id, since)
    .select(['media', 'duration_seconds'])
    .where('answered_at', 'is not', null)
    .orderBy('ended_at', 'desc')
    .limit(limit)
    .execute()
