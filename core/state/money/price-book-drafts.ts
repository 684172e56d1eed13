import type { ImportedRate } from '../../domain/rating/import.ts'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { Trx } from '../db.ts'
import type { State } from '../index.ts'
import { writeInParts } from '../maintenance/parts.ts'
import { insertBookOf, type NewBook, type PriceBookRow } from './rates.ts'

/**
 * The rates of a book are written before the book, some in each transaction, so that calls and requests wait for no
 * import. No rate applies until the book is there.
 */

/** An import takes minutes at most. */
const DRAFT_LIFE_MS = 6 * 3_600_000
/** The last group of a UUID. */
const COUNT_DIGITS = 12

/** Writes the rates of a book to be. Returns the id that the book will have. */
export async function draftRates(state: State, rates: readonly ImportedRate[], now_ms: number): Promise<string> {
  const price_book_id = `pbk_${newId.uuid()}`
  const created_at = iso(now_ms)
  await state.shortTransaction(trx =>
    trx.insertInto('price_book_draft').values({ id: price_book_id, created_at }).execute(),
  )
  const newRateId = rateIds()
  let at = 0
  await writeInParts(state, async (trx, rows) => {
    const values = rates.slice(at, at + rows).map(rate => ({ id: newRateId(), price_book_id, ...rate }))
    if (values.length > 0) await trx.insertInto('rate').values(values).execute()
    at += values.length
    return at < rates.length
  })
  return price_book_id
}

/**
 * Makes ids of which each comes behind the one before. Random ones would lie all over the index, and each rate would
 * change a page of its own.
 */
function rateIds(): () => string {
  const beginning = newId.uuid().slice(0, -COUNT_DIGITS)
  let count = 0
  return () => `rat_${beginning}${(count++).toString(16).padStart(COUNT_DIGITS, '0')}`
}

/** Makes a book of its draft; undefined when the draft is gone. The book is in force from its time on. */
export async function publishDraft(trx: Trx, id: string, book: NewBook): Promise<PriceBookRow | undefined> {
  const { numDeletedRows } = await trx.deleteFrom('price_book_draft').where('id', '=', id).executeTakeFirstOrThrow()
  return numDeletedRows === 0n ? undefined : insertBookOf(trx, id, book)
}

/** Deletes drafts that no import will finish. */
export async function dropOldDrafts(state: State, now_ms: number): Promise<void> {
  const before = iso(now_ms - DRAFT_LIFE_MS)
  const old = await state.db.selectFrom('price_book_draft').select('id').where('created_at', '<', before).execute()
  for (const { id } of old) {
    await writeInParts(state, async (trx, rows) => {
      const { numDeletedRows } = await trx
        .deleteFrom('rate')
        .where('id', 'in', eb => eb.selectFrom('rate').select('id').where('price_book_id', '=', id).limit(rows))
        .executeTakeFirstOrThrow()
      return numDeletedRows > 0n
    })
    await state.shortTransaction(trx => trx.deleteFrom('price_book_draft').where('id', '=', id).execute())
  }
}
