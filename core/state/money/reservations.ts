import type { Selectable } from 'kysely'
import { type CallPrice, callPrice, explainPrice, type PriceInputs } from '../../domain/rating/explain.ts'
import type { Db, ReservationTable, Trx } from '../db.ts'
import { callProcedure } from '../port.ts'
import type { ExtendInput, Extension } from '../procedures/ceilings/settle.ts'

export type ReservationRow = Selectable<ReservationTable>

/** How far ahead an extension reserves money. Extend this long before the money runs out. */
const EXTENSION_AHEAD_SECONDS = 15

/**
 * Reserves money for the next seconds of a running call. Call it some seconds before `paid_until_seconds`. When
 * `exhausted`, hang up the call at `paid_until_seconds`. An error must not end the call: storage may recover before the
 * money runs out.
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

/** Returns what a call cost, and the lines by which a person can recompute it; null for a running or unpriced call. */
export async function costOfCall(
  db: Db | Trx,
  call_sid: string,
): Promise<{ readonly price: CallPrice; readonly explanation: string[] } | null> {
  const row = await findReservation(db, call_sid)
  const inputs = row && inputsOf(row)
  return inputs ? { price: callPrice(inputs), explanation: explainPrice(inputs) } : null
}

interface Cost {
  readonly price_minor: number | null
  readonly price: CallPrice | null
}

/** Reads what each of these calls cost; null for a running or unpriced call. */
export async function pricesOf(db: Db, sids: readonly string[]): Promise<(call_sid: string) => Cost> {
  const rows =
    sids.length === 0 ? [] : await db.selectFrom('reservation').selectAll().where('call_sid', 'in', sids).execute()
  const found = new Map(rows.map(row => [row.call_sid, row]))
  return call_sid => {
    const row = found.get(call_sid)
    const inputs = row && inputsOf(row)
    return { price_minor: row?.charge_minor ?? null, price: inputs ? callPrice(inputs) : null }
  }
}

const inputsOf = (row: ReservationRow): PriceInputs | null =>
  row.duration_seconds === null ? null : { ...row, duration_seconds: row.duration_seconds }

export type { Caps } from '../procedures/ceilings/spend.ts'
