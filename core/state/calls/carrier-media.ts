import { sql } from 'kysely'
import { CARRIER_MEDIA_NAMES, type CarrierMedia, HOUR_MS } from '../../domain/metrics/index.ts'
import type { Db } from '../db.ts'

const DAY_MS = 24 * HOUR_MS

/**
 * Sums the media of a carrier's legs that ended on each day from `from` to `to` (UTC, both included), by day. Days
 * without a leg are left out, as are days whose steps are deleted by now (`KEPT_MS`).
 */
export async function carrierMediaDays(
  db: Db,
  carrier_id: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<ReadonlyMap<string, CarrierMedia>> {
  const day = sql<number>`begin_ms / ${sql.lit(DAY_MS)}`
  const rows = await db
    .selectFrom('carrier_media_step')
    .select(CARRIER_MEDIA_NAMES.map(name => sql<number>`sum(${sql.ref(name)})`.as(name)))
    .select(day.as('day'))
    .where('carrier_id', '=', carrier_id)
    .where('step_ms', '=', HOUR_MS)
    .where('begin_ms', '>=', Date.parse(from))
    .where('begin_ms', '<', Date.parse(to) + DAY_MS)
    .groupBy(day)
    .execute()
  return new Map(
    rows.map(row => [
      new Date(Number(row.day) * DAY_MS).toISOString().slice(0, 10),
      Object.fromEntries(CARRIER_MEDIA_NAMES.map(name => [name, Number(row[name])])) as CarrierMedia,
    ]),
  )
}
