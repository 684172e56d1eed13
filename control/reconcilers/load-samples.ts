import { addLoadSample } from '../../core/state/calls/load-steps.ts'
import type { Reconciler } from './reconciler.ts'

const PERIOD_MS = 5000

/** Counts live calls every few seconds: the load of a time step, running calls included. */
export function loadSamples(): Reconciler {
  let last_ms: number | null = null
  return {
    name: 'load-samples',
    period_ms: PERIOD_MS,
    runs: 'once',
    async run({ state, clock }) {
      const now_ms = clock.monotonic_ms()
      // Another process may have had this task for a while. A sample then stands for two periods at most.
      const since_ms = last_ms === null ? PERIOD_MS : Math.min(now_ms - last_ms, 2 * PERIOD_MS)
      last_ms = now_ms
      await state.transaction(trx => addLoadSample(trx, clock.now(), Math.round(since_ms)))
    },
  }
}
