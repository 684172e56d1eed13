import { iso } from '../../core/runtime/clock.ts'
import {
  endLostTestRuns,
  forgetOldTestRuns,
  insertTestRun,
  trunksDueForTest,
} from '../../core/state/configuration/trunk-tests.ts'
import type { Reconciler } from './reconciler.ts'

/** The most scheduled tests that begin in one run: a thousand trunks spread over the first hours after a start. */
const AT_ONCE = 5

/** Starts the daily test of each enabled trunk, ends tests whose node was lost, and deletes old ones. */
export const overdueTrunkTests: Reconciler = {
  name: 'trunk-tests',
  period_ms: 30_000,
  runs: 'once',
  async run({ state, clock, bus }) {
    const now_ms = clock.now()
    await endLostTestRuns(state.db, now_ms)
    await forgetOldTestRuns(state, now_ms)
    const due = await trunksDueForTest(state.db, now_ms, AT_ONCE)
    for (const trunk of due)
      await state.transaction(trx =>
        insertTestRun(
          trx,
          {
            project_id: trunk.project_id,
            subject_type: 'trunk',
            subject_id: trunk.id,
            requested_kind: 'config_validation',
            requested_revision: trunk.revision,
            destination: null,
            run_by: 'schedule',
            scheduled: 1,
          },
          iso(now_ms),
        ),
      )
    if (due.length > 0) bus.ring('commands')
  },
}
