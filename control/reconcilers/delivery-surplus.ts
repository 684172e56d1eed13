import { giveUpSurplus } from '../../core/state/delivery/surplus.ts'
import type { Reconciler } from './reconciler.ts'

/** Callbacks of a project that may wait, and events for its webhook endpoints. More may, until the task runs again. */
const MOST_WAITING = 100_000

/** Keeps a project whose servers take nothing from filling the database. */
export const deliverySurplus: Reconciler = {
  name: 'delivery-surplus',
  period_ms: 60_000,
  runs: 'once',
  async run({ state, log }, goesOn) {
    for (const surplus of await giveUpSurplus(state, MOST_WAITING, goesOn))
      log.warn(surplus, 'a project has more to deliver than its servers take: the oldest was given up')
  },
}
