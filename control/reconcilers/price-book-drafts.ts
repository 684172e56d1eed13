import { dropOldDrafts } from '../../core/state/money/price-book-drafts.ts'
import type { Reconciler } from './reconciler.ts'

/** Deletes what imports of price books left behind that were refused, repeated or killed. */
export const priceBookDrafts: Reconciler = {
  name: 'price-book-drafts',
  period_ms: 600_000,
  runs: 'once',
  run: ({ state, clock }) => dropOldDrafts(state, clock.now()),
}
