import { crashHistory } from '../../bench/cluster/crashes.ts'
import t from '../support/harness/index.ts'
import { breakable } from '../support/postgres.ts'

// The short form of `npm run bench -- cluster --only crashes`.

t.test('processes and the database die in the middle of a history, and nothing acknowledged is lost', async t => {
  const { another: database, breakOff, comeBack } = await breakable(t)
  const { broken, kills, outages, admitted, refused } = await crashHistory(
    { database, breakOff, comeBack },
    { seed: 1, operations: 200, crashes: 3 },
  )
  t.same(broken, [])
  t.same([kills, outages], [3, 1], 'with the server one of the processes dies')
  t.ok(admitted > 20 && refused > 0, 'the ceilings were reached')
})
