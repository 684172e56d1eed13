import { againOnPostgres } from '../support/engine.ts'
import t from '../support/harness/index.ts'

// Stories of the product, unchanged, on a platform whose state is in PostgreSQL: an operator goes live, the stock
// client calls, documents bridge calls, and the console's first steps. `npm run test:postgres` runs all of them so.
// #own-process: its shared platform is not that of other stories.
for (const path of [
  './go-live.test.js',
  '../unit/control/voice/stock-client.test.js',
  './voice.test.js',
  './console.test.js',
])
  await againOnPostgres(t, path, import.meta.url)
