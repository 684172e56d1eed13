import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId } from '../../../../../../core/runtime/ids.ts'
import type { AdmissionOutcome } from '../../../../../../core/state/calls/leases.ts'
import { brokenInvariants } from '../../../../../../core/state/maintenance/invariants.ts'
import { take } from '../../../../../../core/state/procedures/admission/take.ts'
import { ceilings } from '../../../../../../core/state/procedures/ceilings/index.ts'
import {
  FactsChanged,
  mustBy,
  type Query,
  untilUnchanged,
  type Value,
} from '../../../../../../core/state/procedures/query.ts'
import { type AdmissionWorld, admissionWorld } from '../../../../../support/admission-world.ts'
import t, { type Test } from '../../../../../support/harness/index.ts'

/**
 * Simulates a writer of a database without exclusive transactions: it reads facts outside the transaction, which begins
 * with the first statement that writes. `between` runs the other writer's commits before that.
 */
function writerOf(test: Test, file: string) {
  const database = new Database(file)
  test.teardown(() => database.close())
  let attempts = 0
  const run = <Result>(procedure: (query: Query) => Result, between: () => void): Result => {
    attempts = 0
    return untilUnchanged(() => {
      attempts++
      const prepared = (sql: string, parameters: readonly Value[]) => {
        const statement = database.prepare(sql)
        if (!statement.readonly && !database.inTransaction) {
          between()
          database.exec('begin immediate')
        }
        return { statement, parameters }
      }
      const rows = <R extends object>(sql: string, ...given: readonly Value[]): R[] => {
        const { statement, parameters } = prepared(sql, given)
        if (statement.reader) return statement.all(...parameters) as R[]
        statement.run(...parameters)
        return []
      }
      const changes = (sql: string, ...given: readonly Value[]) => {
        const { statement, parameters } = prepared(sql, given)
        return statement.run(...parameters).changes
      }
      try {
        const result = procedure(
          Object.assign(rows, {
            changes,
            must: mustBy(changes),
            position: () => null,
            tally: null,
            now_ms: () => 5_000_000,
            uuid: newId.uuid,
          }),
        )
        if (database.inTransaction) database.exec('commit')
        return result
      } catch (error) {
        if (database.inTransaction) database.exec('rollback')
        throw error
      }
    })
  }
  return { run, attempts: () => attempts }
}

const reasonOf = (outcome: AdmissionOutcome): string | null => (outcome.admitted ? null : outcome.reason)

interface Race {
  readonly world: AdmissionWorld
  /** Admits a call; `others` are admitted between reading its facts and taking its slots. */
  against(others: number): AdmissionOutcome
  /** Number of decisions on the call. */
  attempts(): number
}

async function race(t: Test): Promise<Race> {
  const world = await admissionWorld()
  t.teardown(() => world.close())
  const file = join(world.data_dir, 'strowger.sqlite')
  const [one, other] = [writerOf(t, file), writerOf(t, file)]
  const admit = (query: Query) => take(query, { request: world.request({ store_ms: 5_000_000 }), dry_run: false })
  return {
    world,
    against(others) {
      let left = others
      return one.run(admit, () => {
        for (; left > 0; left--) t.equal(other.run(admit, () => undefined).admitted, true, 'the other is admitted')
      })
    },
    attempts: one.attempts,
  }
}

async function counters({ state: { db } }: AdmissionWorld) {
  const live = await db.selectFrom('level_use').select(['level', 'live']).orderBy('level').execute()
  const leases = await db.selectFrom('lease').select('call_sid').execute()
  const days = await db.selectFrom('spend_day').select('spent_minor').execute()
  return { live: live.map(row => row.live), leases: leases.length, spent: days.map(row => row.spent_minor) }
}

t.test('one of two writers gets the last slot of a level; no other level counts the loser', async t => {
  const r = await race(t)
  await r.world.policy({ concurrency: 2 })
  t.equal(r.against(0).admitted, true)
  const lost = r.against(1)
  t.equal(reasonOf(lost), 'concurrency_exceeded')
  t.match(lost, { facts: { value: 2, limit: 2 } }, 'the decision uses the current usage')
  t.equal(r.attempts(), 2)
  t.same(await counters(r.world), { live: [2, 2, 2], leases: 2, spent: [20, 20, 20] })
  t.same(await brokenInvariants(r.world.state.db), [])
})

t.test('the first attempt takes a slot while one is left', async t => {
  const r = await race(t)
  await r.world.policy({ concurrency: 4 })
  t.equal(r.against(0).admitted, true)
  t.equal(r.against(2).admitted, true)
  t.equal(r.attempts(), 1)
  t.same(await counters(r.world), { live: [4, 4, 4], leases: 4, spent: [40, 40, 40] })
})

t.test('counts both calls of two writers that create a level’s counter concurrently', async t => {
  const r = await race(t)
  t.equal(r.against(1).admitted, true)
  t.equal(r.attempts(), 2)
  t.same(await counters(r.world), { live: [2, 2], leases: 2, spent: [20, 20] })
})

t.test('two writers together admit exactly the CPS ceiling in a second', async t => {
  const r = await race(t)
  await r.world.trunk({ cps: 3 })
  t.equal(r.against(0).admitted, true)
  t.equal(r.against(1).admitted, true, 'the second and third call')
  t.equal(r.attempts(), 1)
  t.equal(reasonOf(r.against(0)), 'cps_exceeded')
  await r.world.trunk({ cps: 4 })
  const lost = r.against(1)
  t.equal(reasonOf(lost), 'cps_exceeded')
  t.match(lost, { facts: { value: 4, limit: 4 } })
  t.equal(r.attempts(), 2)
  t.same((await counters(r.world)).live, [4, 4])
})

t.test('one of two writers gets the last money of a daily cap, a rolling hour and a balance', async t => {
  const caps = {
    daily_spend_exceeded: (world: AdmissionWorld) => world.policy({ daily_spend_limit_minor: 25 }),
    velocity_exceeded: (world: AdmissionWorld) =>
      world.state.db
        .insertInto('project_ceiling')
        .values({
          ...{ project_id: world.project_id, concurrency: null, cps: null, daily_spend_cap_minor: null },
          ...{ velocity_cap_minor: 25, max_call_duration_seconds: null, max_destination_rate_minor: null },
          ...{ revision: 1, updated_at: 'x' },
        })
        .execute(),
    balance_exhausted: (world: AdmissionWorld) => world.prepaid(25),
  }
  for (const [reason, cap] of Object.entries(caps)) {
    const r = await race(t)
    await cap(r.world)
    t.equal(r.against(0).admitted, true)
    t.equal(reasonOf(r.against(1)), reason)
    t.equal(r.attempts(), 2, reason)
    const { leases, live, spent } = await counters(r.world)
    t.same(
      { leases, live: new Set(live), spent: new Set(spent) },
      { leases: 2, live: new Set([2]), spent: new Set([20]) },
    )
    t.same(await brokenInvariants(r.world.state.db), [])
  }
})

t.test('when two writers release and extend the same call, slots and money move once', async t => {
  const world = await admissionWorld()
  t.teardown(() => world.close())
  await world.prepaid(1000)
  const file = join(world.data_dir, 'strowger.sqlite')
  const [one, other] = [writerOf(t, file), writerOf(t, file)]
  const request = world.request({ store_ms: 5_000_000 })
  const nothing = () => undefined
  t.equal(one.run(query => take(query, { request, dry_run: false }), nothing).admitted, true)
  const { call_sid } = request
  const extend = (query: Query) =>
    ceilings.extend(query, { call_sid, elapsed_seconds: 9, ahead_seconds: 15, store_ms: 5_001_000 })
  let raced = false
  const once = (act: () => unknown) => () => {
    if (!raced) act()
    raced = true
  }
  t.same(
    one.run(
      extend,
      once(() => other.run(extend, nothing)),
    ),
    { paid_until_seconds: 30, exhausted: false },
  )
  t.same((await counters(world)).spent, [30, 30], 'held once')
  raced = false
  const end = { call_sid, duration_seconds: 25, answered: true, now_ms: request.now_ms }
  const release = (query: Query) => ceilings.release(query, end)
  t.match(
    one.run(
      release,
      once(() => other.run(release, nothing)),
    ),
    { released: 0, price: { amount_minor: 30, billed_seconds: 30 } },
  )
  t.same(await world.state.db.selectFrom('ledger').select('amount_minor').execute(), [{ amount_minor: -30 }])
  t.same((await counters(world)).live, [0, 0])
  t.same(await brokenInvariants(world.state.db), [])
})

t.test('gives up on a procedure whose facts keep changing', t => {
  let attempts = 0
  const restless = () =>
    untilUnchanged(() => {
      attempts++
      throw new FactsChanged('somebody else is always first')
    })
  t.throws(restless, FactsChanged)
  t.equal(attempts, 10)
  t.end()
})
