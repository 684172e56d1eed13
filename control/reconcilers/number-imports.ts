import { dropOldImports, stepImports } from '../../core/state/configuration/number-imports.ts'
import type { Reconciler } from './reconciler.ts'

/** Takes confirmed lists of numbers into the inventory, a slice of each in turn, and deletes old imports. */
export const numberImportTask: Reconciler = {
  name: 'number-imports',
  period_ms: 5000,
  runs: 'once',
  topics: ['jobs'],
  async run({ state, clock }) {
    while ((await stepImports(state, clock.now())) > 0);
    await dropOldImports(state, clock.now())
  },
}
