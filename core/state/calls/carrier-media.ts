import { sql } from 'kysely'
import { CARRIER_MEDIA_NAMES, type CarrierMedia, stepOf, type Window, windowBegin } from '../../domain/metrics/index.ts'
import type { Db } from '../db.ts'

/** Sums the media of a carrier's legs in a window that ends now and begins at a whole minute (1h) or hour. */
export async function carrierMediaOfWindow(
  db: Db,
  carrier_id: string,
  window: Window,
  now_ms: number,
): Promise<CarrierMedia> {
  const row = await db
    .selectFrom('carrier_media_step')
    .select(CARRIER_MEDIA_NAMES.map(name => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`.as(name)))
    .where('carrier_id', '=', carrier_id)
    .where('step_ms', '=', stepOf(window))
    .where('begin_ms', '>=', windowBegin(now_ms, window))
    .executeTakeFirstOrThrow()
  return Object.fromEntries(CARRIER_MEDIA_NAMES.map(name => [name, Number(row[name])])) as CarrierMedia
}
