import { iso } from '../../core/runtime/clock.ts'
import { forgetOldSteps } from '../../core/state/calls/call-steps.ts'
import { dropExpiredSessions } from '../../core/state/people/console-sessions.ts'
import { dropExpiredOutcomes } from '../../core/state/people/idempotency.ts'
import type { Reconciler } from './reconciler.ts'

/** Deletes expired rows: outcomes of idempotent requests (24 hours), ended console sessions, old metrics. */
export const expiredRows: Reconciler = {
  name: 'expired-rows',
  period_ms: 60_000,
  async run({ state, clock }) {
    const now_ms = clock.now()
    const now = iso(now_ms)
    await dropExpiredOutcomes(state.db, now)
    await dropExpiredSessions(state.db, now)
    await forgetOldSteps(state.db, now_ms)
  },
}
