import type { ImportedNumber } from '../../domain/numbers/import.ts'
import type { Db, Trx } from '../db.ts'

/** Which projects may order numbers of the inventory, and at what price. */

type Terms = Pick<ImportedNumber, 'offered_to' | 'offered_project_id'> & Partial<Pick<ImportedNumber, 'monthly_minor'>>

/** Offers the numbers of a range that are in the inventory. Returns their count. */
export async function offerNumbers(
  trx: Trx,
  { first, last }: { readonly first: string; readonly last: string },
  terms: Terms,
  now: string,
): Promise<number> {
  const { numUpdatedRows } = await trx
    .updateTable('number')
    .set(eb => ({ ...terms, revision: eb('revision', '+', 1), updated_at: now }))
    .where('status', '=', 'available')
    .where('e164', '>=', first)
    .where('e164', '<=', last)
    // Digits of one length alone make a range.
    .where(eb => eb(eb.fn<number>('length', ['e164']), '=', first.length))
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/** Counts the inventory by its terms. */
export async function listOffers(db: Db, limit: number) {
  const rows = await db
    .selectFrom('number')
    .select(['offered_to', 'offered_project_id', 'monthly_minor'])
    .select(eb => [eb.fn.countAll<number>().as('numbers'), eb.fn.min('e164').as('first'), eb.fn.max('e164').as('last')])
    .where('status', '=', 'available')
    .groupBy(['offered_to', 'offered_project_id', 'monthly_minor'])
    .orderBy('first')
    .limit(limit)
    .execute()
  return rows.map(row => ({ ...row, numbers: Number(row.numbers) }))
}
