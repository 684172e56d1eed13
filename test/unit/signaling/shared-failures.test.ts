import { FAILED_TRIES, type GuardedSource } from '../../../core/runtime/edge-link.ts'
import { createLog } from '../../../core/runtime/log.ts'
import type { RateStore } from '../../../core/runtime/rate-store.ts'
import { RedisRates } from '../../../core/runtime/redis/rates.ts'
import { PostgresRates } from '../../../core/state/postgres/rates.ts'
import { SharedFailures } from '../../../signaling/shared-failures.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { postgresDatabase } from '../../support/postgres.ts'
import { redisServer } from '../../support/redis.ts'
import { PATIENCE_MS, until } from '../../support/wait.ts'

// Machines count the failed tries of a source together, in PostgreSQL and in Redis.

const log = createLog('test', { log_level: 'silent' })
const source = (host: string): GuardedSource => ({ protocol: 'udp', host })

// What is not counted within a second counts at its own machine alone, which is not under test.
const PLACES: Readonly<Record<string, (t: Test) => Promise<() => RateStore>>> = {
  async PostgreSQL() {
    const url = await postgresDatabase()
    return () => new PostgresRates(url, PATIENCE_MS)
  },
  async Redis(t) {
    const { url } = await redisServer(t)
    return () => new RedisRates({ url, prefix: 'test', log, within_ms: PATIENCE_MS })
  },
}

for (const [place, open] of Object.entries(PLACES))
  t.test(`five failed tries at two machines together shut a source out of both, by ${place}`, async t => {
    const openOne = await open(t)
    let opened = 0
    const machine = () => {
      const shut: (readonly [string, number])[] = []
      const openStore = async (): Promise<RateStore> => {
        opened++
        const store = openOne()
        const reached = () =>
          store.draw([]).then(
            () => true,
            () => false,
          )
        await until('the store is reached', reached)
        return store
      }
      const failures = new SharedFailures({ open: openStore, log }, ({ host }, ms) => shut.push([host, ms]))
      t.teardown(() => failures.stop())
      const fails = (host: string, times: number): void => {
        for (let at = 0; at < times; at++) failures.tried(source(host), true)
      }
      return { shut, failures, fails }
    }
    const [a, b] = [machine(), machine()]
    t.equal(opened, 0, 'a machine without failures opens nothing')
    a.fails('192.0.2.1', 3)
    a.fails('192.0.2.2', 4)
    b.fails('192.0.2.3', 4)
    await until('they are counted', () => opened === 2)
    b.fails('192.0.2.1', 2)
    await until('it is shut out', () => b.shut.length > 0 || a.shut.length > 0)
    const hosts = [...a.shut, ...b.shut].map(([host]) => host)
    t.same([...new Set(hosts)], ['192.0.2.1'], 'other sources may go on')
    // A machine that missed the word of the other one finds out at the next failure.
    a.fails('192.0.2.1', 1)
    const [, ms = 0] = await until('the machine that was not told shuts it out, too', () => a.shut.at(-1))
    t.ok(ms > FAILED_TRIES.block_ms - 90_000 && ms <= FAILED_TRIES.block_ms, `until the same moment: ${ms}`)
    // A valid password makes up for what failed before.
    a.failures.tried(source('192.0.2.2'), false)
    a.fails('192.0.2.2', 4)
    a.fails('192.0.2.4', 5)
    await until('what came later is counted', () => a.shut.some(([host]) => host === '192.0.2.4'))
    t.notOk(a.shut.some(([host]) => host === '192.0.2.2'))
  })
