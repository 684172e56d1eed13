import { iso } from '../../core/runtime/clock.ts'
import { endQuarantines } from '../../core/state/configuration/numbers.ts'
import type { Reconciler } from './reconciler.ts'

/** Puts released numbers back into the operator's inventory when their 30 days are over. */
export const quarantines: Reconciler = {
  name: 'quarantines',
  period_ms: 60_000,
  async run({ state, clock, log }) {
    const numbers = await endQuarantines(state.db, iso(clock.now()))
    if (numbers > 0) log.info({ numbers }, 'numbers left quarantine')
  },
}
