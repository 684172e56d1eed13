import { ascendingFromNull, type Db } from '../db.ts'

/** What the calls of a trunk to a destination amount to. */
export interface DestinationFigures {
  /** Digits of the prefix of their price; null for calls without one. */
  readonly prefix: string | null
  readonly label: string | null
  readonly attempts: number
  readonly answered: number
  readonly duration_seconds: number
  readonly pdd_calls: number
  readonly pdd_ms: number
  readonly billed_seconds: number
  readonly charge_minor: number
}

/** The most calls that are read, so that a large trunk delays no other reader for long. */
export const MOST_CALLS = 200_000
const MOST_DESTINATIONS = 500

/** Sums the outbound calls of a trunk that ended within these bounds, by the prefix of their price. */
export async function figuresByDestination(
  db: Db,
  trunk_id: string,
  { since, before }: { readonly since: string; readonly before: string },
): Promise<{ readonly rows: readonly DestinationFigures[]; readonly calls: number }> {
  const recent = db
    .selectFrom('cdr')
    .select(['call_sid', 'answered_at', 'duration_seconds', 'pdd_ms'])
    .where('trunk_id', '=', trunk_id)
    .where('direction', '!=', 'inbound')
    .where('ended_at', '>=', since)
    .where('ended_at', '<', before)
    .orderBy('ended_at', 'desc')
    .limit(MOST_CALLS)
  const found = await db
    .selectFrom(recent.as('recent'))
    .leftJoin('reservation', 'reservation.call_sid', 'recent.call_sid')
    .select(eb => [
      'reservation.rate_prefix as prefix',
      'reservation.rate_label as label',
      eb.fn.countAll<number>().as('attempts'),
      eb.fn.count<number>('recent.answered_at').as('answered'),
      eb.fn.sum<number | null>('recent.duration_seconds').as('duration_seconds'),
      eb.fn.count<number>('recent.pdd_ms').as('pdd_calls'),
      eb.fn.sum<number | null>('recent.pdd_ms').as('pdd_ms'),
      eb.fn.sum<number | null>('reservation.billed_seconds').as('billed_seconds'),
      eb.fn.sum<number | null>('reservation.charge_minor').as('charge_minor'),
    ])
    .groupBy(['prefix', 'label'])
    .orderBy('attempts', 'desc')
    .orderBy('prefix', ascendingFromNull)
    .execute()
  const rows = found.map(row => ({
    prefix: row.prefix,
    label: row.label,
    attempts: Number(row.attempts),
    answered: Number(row.answered),
    duration_seconds: Number(row.duration_seconds ?? 0),
    pdd_calls: Number(row.pdd_calls),
    pdd_ms: Number(row.pdd_ms ?? 0),
    billed_seconds: Number(row.billed_seconds ?? 0),
    charge_minor: Number(row.charge_minor ?? 0),
  }))
  return { rows: rows.slice(0, MOST_DESTINATIONS), calls: rows.reduce((sum, row) => sum + row.attempts, 0) }
}
