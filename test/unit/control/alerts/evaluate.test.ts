import { alertWorld } from '../../../support/alert-world.ts'
import { onPostgres } from '../../../support/engine.ts'
import t from '../../../support/harness/index.ts'
import { plansOf } from '../../../support/query-plans.ts'
import { addTenant } from '../../../support/tenants.ts'

t.test(
  'a look of the fraud watch reads the calls of a window once, not once for each project',
  { skip: onPostgres() && 'explains the plans of SQLite' },
  async t => {
    const w = await alertWorld(t)
    for (const name of ['Harbour', 'Quay', 'Pier']) await addTenant(w.state, w.settings.master_key, [], name)
    const plans = await plansOf(w.state.db, db => w.lookForFraud({ ...w.state, db }))
    const reads = plans.filter(step => /^(SEARCH|SCAN) r\b/.test(step))
    // Whose calls have begun, and for all projects the spend of the hour and the traffic of the last minutes.
    t.equal(reads.length, 3, reads.join('; '))
  },
)
