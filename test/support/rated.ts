import type { ImportedRate } from '../../core/domain/rating/index.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { State } from '../../core/state/index.ts'
import { insertPriceBook, type NewBook, type PriceBookRow } from '../../core/state/money/rates.ts'
import type { World } from './world.ts'

const SINCE = '2026-01-01T00:00:00.000Z'

/**
 * Takes the project out of sandbox mode: its calls have a price and go to real carriers and targets. `rate_micro` is in
 * millionths of a minor unit per minute.
 */
export async function rated(w: World, rate_micro = 60_000_000, increment_seconds = 10): Promise<void> {
  const { db } = w.state
  const id = `pbk_${newId.uuid()}`
  await db
    .insertInto('price_book')
    .values({
      ...{ id, project_id: w.project_id, name: 'Test', direction: 'outbound', currency: 'NGN' },
      ...{ effective_from: SINCE, revision: 1, created_at: SINCE },
    })
    .execute()
  await db
    .insertInto('rate')
    .values({
      ...{
        id: `rat_${newId.uuid()}`,
        price_book_id: id,
        prefix: '234',
        label: 'Nigeria',
        rate_micro,
        rate_unit: 'minute',
      },
      increment_initial_seconds: increment_seconds,
      increment_additional_seconds: increment_seconds,
    })
    .execute()
  await db.updateTable('project').set({ sandbox: 0 }).where('id', '=', w.project_id).execute()
  await db
    .updateTable('configuration')
    .set(eb => ({ revision: eb('revision', '+', 1) }))
    .execute()
}

export const importPriceBook = (state: State, book: NewBook, rates: readonly ImportedRate[]): Promise<PriceBookRow> =>
  state.transaction(trx => insertPriceBook(trx, book, rates))
