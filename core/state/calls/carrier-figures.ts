import { sql } from 'kysely'
import type { Db } from '../db.ts'

/** Figures of the calls that were sent to a carrier, read from the attempts at its targets and what the calls cost. */

export interface CarrierDay {
  /** In UTC. */
  readonly day: string
  readonly attempts: number
  readonly answered: number
  readonly answered_seconds: number
  /** Answered calls with a known post-dial delay, and the sum of the delays. */
  readonly pdd_calls: number
  readonly pdd_ms: number
  readonly charge_minor: number
  readonly cost_minor: number
}

const DAY_MS = 86_400_000

// Not by its name in the result: `reservation` has a column of that name, which PostgreSQL would group by.
const DAY = sql<string>`substr(call_attempt.started_at, 1, 10)`

/**
 * Sums the attempts that began on each day from `from` to `to` (UTC, both included), in order. Days without one are
 * left out. Test calls count: the carrier took them.
 */
export async function carrierDays(
  db: Db,
  carrier_id: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<CarrierDay[]> {
  const end = new Date(Date.parse(to) + DAY_MS).toISOString()
  const rows = await db
    .selectFrom('call_attempt')
    .leftJoin('cdr', join =>
      join.onRef('cdr.call_sid', '=', 'call_attempt.call_sid').on('call_attempt.result', '=', 'answered'),
    )
    .leftJoin('reservation', join =>
      join.onRef('reservation.call_sid', '=', 'call_attempt.call_sid').on('call_attempt.result', '=', 'answered'),
    )
    .select(eb => [
      DAY.as('day'),
      eb.fn.countAll<number>().as('attempts'),
      sql<number>`sum(case when call_attempt.result = 'answered' then 1 else 0 end)`.as('answered'),
      eb.fn.sum<number>('cdr.duration_seconds').as('seconds'),
      eb.fn.count<number>('cdr.pdd_ms').as('pdd_calls'),
      eb.fn.sum<number>('cdr.pdd_ms').as('pdd_ms'),
      eb.fn.sum<number>('reservation.charge_minor').as('charge'),
      eb.fn.sum<number>('reservation.cost_minor').as('cost'),
    ])
    .where('call_attempt.carrier_id', '=', carrier_id)
    .where('call_attempt.started_at', '>=', `${from}T00:00:00.000Z`)
    .where('call_attempt.started_at', '<', end)
    .groupBy(DAY)
    .orderBy(DAY)
    .execute()
  return rows.map(row => ({
    day: row.day,
    attempts: Number(row.attempts),
    answered: Number(row.answered),
    answered_seconds: Number(row.seconds ?? 0),
    pdd_calls: Number(row.pdd_calls),
    pdd_ms: Number(row.pdd_ms ?? 0),
    charge_minor: Number(row.charge ?? 0),
    cost_minor: Number(row.cost ?? 0),
  }))
}
