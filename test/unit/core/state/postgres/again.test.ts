import { againOnPostgres } from '../../../../support/engine.ts'
import t from '../../../../support/harness/index.ts'

// The tests of calls and machines, on the other store. STROWGER_TEST_ENGINE=postgres runs any other file on it.
for (const path of [
  '../calls/leases.test.js',
  '../calls/queued-calls.test.js',
  '../calls/running-calls.test.js',
  '../calls/two-tenants.test.js',
  '../nodes/two-machines.test.js',
])
  await againOnPostgres(t, path, import.meta.url)
