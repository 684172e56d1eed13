import { limitsBy } from '../../../../control/http/limits.ts'
import { createRateLimiter, type RateVerdict } from '../../../../control/http/rate-limit.ts'
import { SharedRates } from '../../../../control/http/shared-rates.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import type { RateStore } from '../../../../core/runtime/rate-store.ts'
import { openRates } from '../../../../core/state/index.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { breakable, postgresDatabase } from '../../../support/postgres.ts'
import { redisServer, tellRedis } from '../../../support/redis.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'

// Two machines count requests together, in PostgreSQL and in Redis. A limit that refills within a day counts as one
// that does not refill.

const log = createLog('test', { log_level: 'silent' })
const master_key = Buffer.alloc(32, 7)
const SLOW = 1 / 86_400

interface Place {
  readonly database_url: string
  readonly redis_url: string | null
}

/**
 * The limits of one machine, and what it asked. A draw has all the time it needs: after a second, the product's limit,
 * a machine counts alone.
 */
async function machine(t: Test, place: Place) {
  const store = await openRates({ ...place, master_key }, log, PATIENCE_MS)
  if (!store) throw new Error('no store')
  let [messages, asks] = [0, 0]
  const counted: RateStore = {
    draw: some => {
      messages++
      asks += some.length
      return store.draw(some)
    },
    prune: () => store.prune(),
    close: () => store.close(),
  }
  const rates = new SharedRates(counted, systemClock, log)
  t.teardown(() => rates.close())
  return { ...limitsBy(rates), store, asked: () => ({ messages, asks }) }
}

type Taker = { take(key: string, now_ms: number, epoch_ms: number): RateVerdict | Promise<RateVerdict> }

const take = async (from: Taker, key: string): Promise<RateVerdict> => await from.take(key, 0, Date.now())

/** Sends so many requests at once. Returns how many pass. */
async function pass(from: Taker, key: string, requests: number): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: requests }, () => take(from, key)))
  return verdicts.filter(({ allowed }) => allowed).length
}

const onBoth = <M, L>(a: M, b: M, limit: (one: M) => L): readonly [L, L] => [limit(a), limit(b)]

const PLACES: Readonly<Record<string, (t: Test) => Promise<Place>>> = {
  PostgreSQL: async () => ({ database_url: await postgresDatabase(), redis_url: null }),
  Redis: async t => ({ database_url: await postgresDatabase(), redis_url: (await redisServer(t)).url }),
}

for (const [where, place] of Object.entries(PLACES)) {
  t.test(`${where}: a customer has one limit on two machines, and its flood takes nothing from another`, async t => {
    const at = await place(t)
    const [a, b] = [await machine(t, at), await machine(t, at)]
    const [here, there] = onBoth(a, b, one => one.bucket('/v1', { burst: 100, per_second: SLOW }))
    const flood = Promise.all([pass(here, 'loud', 400), pass(there, 'loud', 400)])
    t.same(await Promise.all([pass(here, 'quiet', 40), pass(there, 'quiet', 60)]), [40, 60])
    const passed = await flood
    t.equal(passed[0] + passed[1], 100, passed.join())
    for (const one of [here, there]) t.equal((await take(one, 'loud')).allowed, false)
    t.equal(await pass(here, 'quiet', 1), 0, 'the other limit is used up, too')
    const other = a.bucket('/operator/v1', { burst: 100, per_second: SLOW })
    t.equal((await take(other, 'loud')).allowed, true, 'limits of another name are apart')
    const { headers } = await take(there, 'loud')
    t.match(headers, { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '0' })
    t.ok(Number(headers['Retry-After']) > 80_000, `${headers['Retry-After']} s`)
  })

  t.test(
    `${where}: requests in turn are counted once, and what one machine does not use the other one gets`,
    async t => {
      const at = await place(t)
      const [a, b] = [await machine(t, at), await machine(t, at)]
      const [here, there] = onBoth(a, b, one => one.bucket('/v1', { burst: 100, per_second: SLOW }))
      let passed = 0
      for (let request = 0; request < 30; request++)
        for (const one of [here, there]) passed += (await take(one, 'customer')).allowed ? 1 : 0
      t.equal(passed, 60)
      await until('the rest passes at one machine', async () => {
        passed += await pass(there, 'customer', 5)
        return passed >= 100
      })
      t.equal(passed, 100)
      t.equal((await take(here, 'customer')).allowed, false)
    },
  )

  t.test(`${where}: a refill at one machine is one everywhere, a window ends, and a bucket fills again`, async t => {
    const at = await place(t)
    const [a, b] = [await machine(t, at), await machine(t, at)]
    const [here, there] = onBoth(a, b, one => one.bucket('sign-ins', { burst: 5, per_second: SLOW }))
    t.equal((await pass(here, 'member', 3)) + (await pass(there, 'member', 4)), 5)
    there.forget('member')
    await until('all five are there', async () => (await take(here, 'member')).allowed)
    t.equal((await pass(here, 'member', 5)) + (await pass(there, 'member', 5)), 4)

    const [first, second] = onBoth(a, b, one => one.window('general', { requests: 10, seconds: 86_400 }))
    t.equal((await pass(first, 'account', 8)) + (await pass(second, 'account', 8)), 10)
    const brief = a.window('brief', { requests: 10, seconds: 2 })
    await until('a window is full', async () => !(await take(brief, 'account')).allowed)
    await until('the next window', async () => (await take(brief, 'account')).allowed)

    const [fill, empty] = onBoth(a, b, one => one.bucket('fast', { burst: 10, per_second: 5 }))
    t.ok((await pass(fill, 'key', 20)) >= 10)
    await until('it fills', async () => (await take(empty, 'key')).allowed)
  })

  t.test(`${where}: a busy key asks for a part ahead, so that most of its requests ask nobody`, async t => {
    const one = await machine(t, await place(t))
    const limit = one.bucket('/v1', { burst: 2000, per_second: SLOW })
    for (let request = 0; request < 500; request++) t.equal((await take(limit, 'busy')).allowed, true)
    t.ok(one.asked().asks < 20, `${one.asked().asks} asks for 500 requests`)
    await pass(limit, 'busy', 3000)
    const before = one.asked().asks
    t.equal(await pass(limit, 'busy', 1000), 0)
    t.ok(one.asked().asks - before <= 2, 'a flood that is refused asks nobody')
    const many = await Promise.all(Array.from({ length: 300 }, (_, i) => take(limit, `address ${i}`)))
    t.equal(many.filter(({ allowed }) => allowed).length, 300)
    t.ok(one.asked().messages < 60, `${one.asked().messages} messages`)
  })
}

t.test('rows of full limits go', async t => {
  const at = await PLACES['PostgreSQL']?.(t)
  if (!at) throw new Error('no place')
  const { store } = await machine(t, at)
  const ask = { burst: 1, window_ms: null, wanted: 1, back: 0 }
  const draw = () =>
    store.draw([
      { ...ask, name: 'slow', per_second: SLOW },
      { ...ask, name: 'fast', per_second: 1000 },
    ])
  t.match(await draw(), [{ granted: 1 }, { granted: 1 }])
  await until('the fast one is full', async () => (await draw())[1]?.granted === 1)
  await store.prune()
  t.match(await draw(), [{ granted: 0 }, { granted: 1 }])
})

t.test('while Redis is away the database counts for both machines, and each alone without both', async t => {
  const redis = await redisServer(t)
  const server = await breakable(t)
  const { openPostgres } = await import('../../../../core/state/postgres/store.ts')
  await (await openPostgres({ database_url: server.url, migrates: 'anybody' })).close()
  const at = { database_url: server.url, redis_url: redis.url }
  const [a, b] = [await machine(t, at), await machine(t, at)]
  const [here, there] = onBoth(a, b, one => one.bucket('/v1', { burst: 50, per_second: SLOW }))
  await until('Redis counts', async () => {
    await pass(here, 'first', 1)
    return String(await tellRedis(redis.url, 'keys', '*')).includes(':rate:')
  })
  await redis.breakOff()
  t.equal((await pass(here, 'second', 60)) + (await pass(there, 'second', 60)), 50)
  await server.breakOff()
  t.same([await pass(here, 'third', 60), await pass(there, 'third', 60)], [50, 50])
  await server.comeBack()
  await redis.comeBack()
  let fresh = 0
  await until('they count together again', async () => {
    fresh++
    return (await pass(here, `key ${fresh}`, 60)) + (await pass(there, `key ${fresh}`, 60)) === 50
  })
})

t.test('a machine alone counts in memory', async t => {
  const limit = limitsBy(null).bucket('/v1', { burst: 2, per_second: 1 })
  const own = createRateLimiter({ burst: 2, per_second: 1 })
  for (let request = 0; request < 3; request++) t.same(limit.take('key', 0, 0), own.take('key', 0, 0))
})
