import type { Selectable } from 'kysely'
import { explainPrice, type PriceInputs } from '../../domain/rating/explain.ts'
import type { Db, LevelUseTable, ReservationTable, Trx } from '../db.ts'
import { callProcedure } from '../port.ts'
import type { ExtendInput, Extension } from '../procedures/ceilings/settle.ts'

type ReservationRow = Selectable<ReservationTable>

/** Ask for more this long before the money ends, and hold it so far ahead. */
const EXTENSION_AHEAD_SECONDS = 15

/**
 * Holds money for the next seconds of a running call. Call it some seconds before `paid_until_seconds`; when
 * `exhausted`, cut the call at `paid_until_seconds`. An error here ends no call: storage may be back before the money
 * is used up.
 */
export const extendReservation = (
  db: Db | Trx,
  input: Omit<ExtendInput, 'ahead_seconds'> & { readonly ahead_seconds?: number },
): Promise<Extension> =>
  callProcedure(db, 'extend_reservation', {
    ahead_seconds: EXTENSION_AHEAD_SECONDS,
    ...input,
  })

export const findReservation = (db: Db | Trx, call_sid: string): Promise<ReservationRow | undefined> =>
  db.selectFrom('reservation').selectAll().where('call_sid', '=', call_sid).executeTakeFirst()

/** The price of a call line by line (`bin/strowger rate CA…`); null for a call that has none, or that still runs. */
export async function explainCall(db: Db | Trx, call_sid: string): Promise<string[] | null> {
  const row = await findReservation(db, call_sid)
  if (!row || row.duration_seconds === null) return null
  return explainPrice({ ...row, duration_seconds: row.duration_seconds } satisfies PriceInputs)
}

/** Spend of a level in a day of its organization's time zone: settled, and what running calls hold. */
export async function spentOn(db: Db | Trx, level: LevelUseTable['level'], id: string, day: string): Promise<number> {
  const row = await db
    .selectFrom('spend_day')
    .select('spent_minor')
    .where('level', '=', level)
    .where('subject_id', '=', id)
    .where('day', '=', day)
    .executeTakeFirst()
  return row?.spent_minor ?? 0
}
