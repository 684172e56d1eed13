import { iso } from '../../core/runtime/clock.ts'
import { endQuarantines } from '../../core/state/configuration/numbers.ts'
import type { Reconciler } from './reconciler.ts'

/** Returns released numbers to the operator's inventory after 30 days. */
export const quarantines: Reconciler = {
  name: 'quarantines',
  period_ms: 60_000,
  runs: 'once',
  async run({ state, clock, log }) {
    const numbers = await endQuarantines(state.db, iso(clock.now()))
    if (numbers > 0) log.info({ numbers }, 'numbers left quarantine')
  },
}
