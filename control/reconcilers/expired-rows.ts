import { iso } from '../../core/runtime/clock.ts'
import { dropExpiredSessions } from '../../core/state/console-sessions.ts'
import { dropExpiredOutcomes } from '../../core/state/idempotency.ts'
import type { Reconciler } from './reconciler.ts'

/** Forgets what is kept for a time only: outcomes of idempotent requests after 24 hours, ended console sessions. */
export const expiredRows: Reconciler = {
  name: 'expired-rows',
  period_ms: 60_000,
  async run({ state, clock }) {
    const now = iso(clock.now())
    await dropExpiredOutcomes(state.db, now)
    await dropExpiredSessions(state.db, now)
  },
}
