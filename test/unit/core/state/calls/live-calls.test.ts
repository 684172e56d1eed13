import { projectsWithTraffic, recentTraffic, serviceSpend } from '../../../../../core/state/alerts/traffic-facts.ts'
import { listProjectCalls } from '../../../../../core/state/calls/call-history.ts'
import { holdersOf } from '../../../../../core/state/calls/leases.ts'
import { addLoadSample } from '../../../../../core/state/calls/load-steps.ts'
import { callsNow, liveCallsOf, newestLiveCalls } from '../../../../../core/state/calls/project-steps.ts'
import type { Db } from '../../../../../core/state/db.ts'
import { peakOf, usageOf } from '../../../../../core/state/people/subaccounts.ts'
import { admissionWorld, NOW_MS } from '../../../../support/admission-world.ts'
import t from '../../../../support/harness/index.ts'
import { plansOf } from '../../../../support/query-plans.ts'

// What is asked every few seconds of the calls of this moment, of a platform that has had a million.

const { state, close } = await admissionWorld()
t.teardown(close)
const page = { limit: 50 }

const READS: Readonly<Record<string, (db: Db) => Promise<unknown>>> = {
  'the load of all': db => addLoadSample(db, NOW_MS, 5000),
  'the live calls of all': db => newestLiveCalls(db, 50),
  'the number of a project': db => callsNow(db, 'prj_1', NOW_MS),
  'the number of an application': db => liveCallsOf(db, 'app_1'),
  'those of a project': db => listProjectCalls(db, 'prj_1', { live: true }, page),
  'those of a trunk': db => listProjectCalls(db, 'prj_1', { live: true, trunk_id: 'trk_1' }, page),
}

/** A step that may read all calls that a project, a trunk or the platform has had. */
const READS_ENDED = /^SCAN (call|c|running)( |$)(?!USING INDEX call_live$)|^SEARCH (call|c) .*\((?!.*(position|rowid)=)/

t.test('what is asked of live calls looks at no ended one', async t => {
  for (const [what, read] of Object.entries(READS)) {
    const plans = await plansOf(state.db, read)
    t.ok(plans.length > 0, what)
    // The newest calls of a project are counted to a bound, by a subquery that is seen alone and in its statement.
    const bounded = what === 'the number of a project' ? 2 : 0
    t.equal(plans.filter(step => READS_ENDED.test(step)).length, bounded, `${what}: ${plans.join('; ')}`)
  }
})

t.test('the usage and the peak of a subaccount or subtrunk read its leases, not those of all calls', async t => {
  for (const level of ['subaccount', 'subtrunk'] as const) {
    const plans = await plansOf(state.db, async db => {
      await usageOf(db, level, 'id_1', new Date(NOW_MS).toISOString())
      await peakOf(db, level, 'id_1', new Date(NOW_MS).toISOString())
    })
    const reads = plans.filter(step => /\blease\b/.test(step))
    // The subquery is seen alone and in its statement.
    t.equal(reads.length, 4, plans.join('; '))
    for (const step of reads) t.match(step, new RegExp(`^SEARCH lease USING INDEX lease_${level} `))
    t.same(
      plans.filter(step => /^SCAN (call|reservation)\b/.test(step)),
      [],
    )
  }
})

t.test('who holds a slot now is read from the leases of this moment, or of the level', async t => {
  for (const level of ['project', 'subaccount', 'trunk', 'subtrunk', 'policy'] as const) {
    const plans = await plansOf(state.db, db => holdersOf(db, level, 'id_1'))
    const reads = plans.filter(step => /\blease\b/.test(step))
    t.equal(reads.length, 1, plans.join('; '))
    t.match(reads[0], /USING INDEX lease_(live|subaccount|subtrunk)\b/)
  }
})

t.test('what the fraud watch asks every second reads the money of its window, and of no older call', async t => {
  const plans = await plansOf(state.db, async db => {
    await projectsWithTraffic(db, NOW_MS)
    await serviceSpend(db, NOW_MS)
    await recentTraffic(db, NOW_MS)
  })
  const reads = plans.filter(step => /\b(r|reservation)\b/.test(step))
  t.equal(reads.length, 3, plans.join('; '))
  for (const step of reads) t.match(step, /^SEARCH r USING INDEX reservation_begun \(begun_at>\?\)/)
  const calls = plans.filter(step => /^(SEARCH|SCAN) c /.test(step))
  t.equal(calls.length, 4, plans.join('; '))
  t.match(calls.join('; '), /USING INTEGER PRIMARY KEY/, 'the call of a settled reservation')
  t.match(calls.join('; '), /\(sid=\?\)/, 'that of another one')
})
