import type { ImportedRate } from '../../domain/rating/import.ts'
import { iso } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { Trx } from '../db.ts'
import type { State } from '../index.ts'
import { insertBookOf, type NewBook, type PriceBookRow } from './rates.ts'

/**
 * The rates of a book are written before the book, a slice in each transaction, so that calls and requests wait for no
 * import. No rate applies until the book is there.
 */

const SLICE = 500
/** An import takes minutes at most. */
const DRAFT_LIFE_MS = 6 * 3_600_000

/** Writes the rates of a book to be. Returns the id that the book will have. */
export async function draftRates(state: State, rates: readonly ImportedRate[], now_ms: number): Promise<string> {
  const id = `pbk_${newId.uuid()}`
  const created_at = iso(now_ms)
  await state.shortTransaction(trx => trx.insertInto('price_book_draft').values({ id, created_at }).execute())
  for (let at = 0; at < rates.length; at += SLICE) {
    const rows = rates.slice(at, at + SLICE).map(rate => ({ id: `rat_${newId.uuid()}`, price_book_id: id, ...rate }))
    await state.shortTransaction(trx => trx.insertInto('rate').values(rows).execute())
  }
  return id
}

/** Makes a book of its draft; undefined when the draft is gone. The book is in force from its time on. */
export async function publishDraft(trx: Trx, id: string, book: NewBook): Promise<PriceBookRow | undefined> {
  const { numDeletedRows } = await trx.deleteFrom('price_book_draft').where('id', '=', id).executeTakeFirstOrThrow()
  return numDeletedRows === 0n ? undefined : insertBookOf(trx, id, book)
}

/** Deletes drafts that no import will finish, a slice in each transaction. */
export async function dropOldDrafts(state: State, now_ms: number): Promise<void> {
  const before = iso(now_ms - DRAFT_LIFE_MS)
  const old = await state.db.selectFrom('price_book_draft').select('id').where('created_at', '<', before).execute()
  for (const { id } of old) {
    const dropSlice = (trx: Trx) =>
      trx
        .deleteFrom('rate')
        .where('id', 'in', eb => eb.selectFrom('rate').select('id').where('price_book_id', '=', id).limit(SLICE))
        .executeTakeFirstOrThrow()
    while ((await state.shortTransaction(dropSlice)).numDeletedRows > 0n);
    await state.shortTransaction(trx => trx.deleteFrom('price_book_draft').where('id', '=', id).execute())
  }
}
