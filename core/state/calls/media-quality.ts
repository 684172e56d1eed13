import type { Selectable } from 'kysely'
import type { LegFigures } from '../../domain/calls/leg-figures.ts'
import { iso } from '../../runtime/clock.ts'
import type { Db, MediaQualityTable, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { dropOldRows } from '../maintenance/old-rows.ts'

/** Limit per call. A call of one day has 8640 samples per leg. */
const MAX_ROWS_PER_CALL = 20_000

export async function addMediaQuality(
  db: Db | Trx,
  sample: { readonly call_sid: string; readonly leg_id: string; readonly stats: object },
  now_ms: number,
): Promise<void> {
  const { count } = await db
    .selectFrom('media_quality')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('call_sid', '=', sample.call_sid)
    .executeTakeFirstOrThrow()
  if (Number(count) >= MAX_ROWS_PER_CALL) return
  await db
    .insertInto('media_quality')
    .values({ ...sample, stats: JSON.stringify(sample.stats), at: iso(now_ms) })
    .execute()
}

export const mediaQualityOf = (db: Db | Trx, call_sid: string): Promise<Selectable<MediaQualityTable>[]> =>
  db.selectFrom('media_quality').selectAll().where('call_sid', '=', call_sid).orderBy('id').execute()

/** Returns the final figures of the legs that have ended, in the order of their end. */
export async function legFiguresOf(db: Db | Trx, call_sid: string): Promise<LegFigures[]> {
  const rows = await db
    .selectFrom('leg_figures')
    .select('figures')
    .where('call_sid', '=', call_sid)
    .orderBy('ended_at')
    .orderBy('leg_id')
    .execute()
  return rows.map(({ figures }) => JSON.parse(figures) as LegFigures)
}

/** Deletes samples older than `before_ms`. */
export async function pruneMediaQuality(state: State, before_ms: number, goesOn?: () => boolean): Promise<void> {
  await dropOldRows(state, { name: 'media_quality', number: 'id', at: 'at' }, iso(before_ms), goesOn)
}
