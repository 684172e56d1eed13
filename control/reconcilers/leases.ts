import { pruneAdmission, sweepLeases } from '../../core/state/calls/leases.ts'
import type { Reconciler } from './reconciler.ts'

/** Gives back slots and money held for calls that are no more. */
export const orphanedLeases: Reconciler = {
  name: 'orphaned-leases',
  period_ms: 5000,
  async run({ state, clock, log }) {
    const returned = await sweepLeases(state, { now_ms: clock.now() })
    if (returned > 0) log.warn({ calls: returned }, 'gave back what lost calls held')
  },
}

/** Forgets leases and counters whose time to be kept is over. */
export const oldLeases: Reconciler = {
  name: 'old-leases',
  period_ms: 3_600_000,
  async run({ state, clock }) {
    await pruneAdmission(state.db, clock.now())
  },
}
