import { chargeNumbers } from '../../core/state/money/number-charges.ts'
import type { Reconciler } from './reconciler.ts'

/** Charges the month of every number that costs money. */
export const numberCharges: Reconciler = {
  name: 'number-charges',
  period_ms: 600_000,
  runs: 'once',
  async run({ state, clock, log }) {
    const charged = await chargeNumbers(state, clock.now())
    if (charged > 0) log.info({ charged }, 'numbers were charged for the month')
  },
}
