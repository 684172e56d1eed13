import { pruneAdmission, sweepLeases } from '../../core/state/calls/leases.ts'
import type { Reconciler } from './reconciler.ts'

/** Releases the slots and the money held for calls that no longer exist. */
export const orphanedLeases: Reconciler = {
  name: 'orphaned-leases',
  period_ms: 5000,
  runs: 'once',
  async run({ state, clock, log }) {
    const returned = await sweepLeases(state, { now_ms: clock.now() })
    if (returned > 0) log.warn({ calls: returned }, 'slots and money of lost calls were released')
  },
}

/** Deletes leases and counters after their retention time. */
export const oldLeases: Reconciler = {
  name: 'old-leases',
  period_ms: 3_600_000,
  runs: 'once',
  async run({ state, clock }, goesOn) {
    await pruneAdmission(state, clock.now(), goesOn)
  },
}
