import { iso } from '../../core/runtime/clock.ts'
import { dropExpiredOutcomes } from '../../core/state/idempotency.ts'
import type { Reconciler } from './reconciler.ts'

/** Forgets what is kept for a time only: outcomes of idempotent requests after 24 hours. */
export const expiredRows: Reconciler = {
  name: 'expired-rows',
  period_ms: 60_000,
  async run({ state, clock }) {
    await dropExpiredOutcomes(state.db, iso(clock.now()))
  },
}
