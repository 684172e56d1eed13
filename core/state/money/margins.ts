import { ascendingFromNull, type Db } from '../db.ts'

/** What calls brought and cost the operator, read from the reservations, which hold both. */

export const MARGIN_GROUPS = ['day', 'carrier', 'project', 'destination', 'call'] as const
type MarginGroup = (typeof MARGIN_GROUPS)[number]

interface MarginFilter {
  /** First and last day, each in the time zone of the call's organization. */
  readonly from: string
  readonly to: string
  readonly project_id?: string
  readonly carrier_id?: string
}

export interface MarginRow {
  /** Day, carrier id, project id, destination name or call sid; null for calls without one. */
  readonly key: string | null
  readonly calls: number
  readonly charge_minor: number
  readonly cost_minor: number
}

const KEY = {
  day: 'day',
  carrier: 'carrier_id',
  project: 'project_id',
  destination: 'rate_label',
  call: 'call_sid',
} as const

const DAY_MS = 86_400_000
const around = (day: string, days: number): string => new Date(Date.parse(day) + days * DAY_MS).toISOString()

/** Sums charges and costs of settled calls, those with the least margin first; days in order. */
export async function marginsBy(
  db: Db,
  group: MarginGroup,
  { from, to, project_id, carrier_id }: MarginFilter,
  limit: number,
): Promise<MarginRow[]> {
  let query = db
    .selectFrom('reservation')
    .select(eb => [
      eb.ref(KEY[group]).as('key'),
      eb.fn.countAll<number>().as('calls'),
      eb.fn.sum<number>('charge_minor').as('charge'),
      eb.fn.sum<number>(eb.fn.coalesce('cost_minor', eb.lit(0))).as('cost'),
    ])
    // The days of a zone lie within a day of those in UTC; the index is by instants.
    .where('begun_at', '>=', around(from, -1))
    .where('begun_at', '<', around(to, 2))
    .where('day', '>=', from)
    .where('day', '<=', to)
    .where('settled_at', 'is not', null)
    .groupBy(KEY[group])
    .limit(limit)
  if (project_id !== undefined) query = query.where('project_id', '=', project_id)
  if (carrier_id !== undefined) query = query.where('carrier_id', '=', carrier_id)
  const ordered =
    group === 'day'
      ? query.orderBy('key')
      : query
          .orderBy(eb =>
            eb(eb.fn.sum<number>('charge_minor'), '-', eb.fn.sum<number>(eb.fn.coalesce('cost_minor', eb.lit(0)))),
          )
          .orderBy('key', ascendingFromNull)
  return (await ordered.execute()).map(row => ({
    key: row.key,
    calls: Number(row.calls),
    charge_minor: Number(row.charge ?? 0),
    cost_minor: Number(row.cost ?? 0),
  }))
}
