import { iso } from '../../core/runtime/clock.ts'
import { pruneActivities } from '../../core/state/calls/activities.ts'
import { forgetOldSteps } from '../../core/state/calls/call-steps.ts'
import { pruneConferences } from '../../core/state/calls/conferences.ts'
import { pruneMembers } from '../../core/state/calls/queues.ts'
import { dropExpiredSessions } from '../../core/state/people/console-sessions.ts'
import { dropExpiredOutcomes } from '../../core/state/people/idempotency.ts'
import type { Reconciler } from './reconciler.ts'

const DAY_MS = 86_400_000
/** How long conferences and activities of calls are kept. */
const CONTROL_DAYS = 30

/** Deletes expired rows: outcomes of idempotent requests (24 hours), console sessions, and what ended long ago. */
export const expiredRows: Reconciler = {
  name: 'expired-rows',
  period_ms: 60_000,
  runs: 'once',
  async run({ state, clock }) {
    const now_ms = clock.now()
    const now = iso(now_ms)
    await dropExpiredOutcomes(state.db, now)
    await dropExpiredSessions(state.db, now)
    await forgetOldSteps(state.db, now_ms)
    await pruneConferences(state.db, now_ms - CONTROL_DAYS * DAY_MS)
    await pruneMembers(state.db)
    await pruneActivities(state.db, now_ms - CONTROL_DAYS * DAY_MS)
  },
}
