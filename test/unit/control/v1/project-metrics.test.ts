import { ending } from '../../../../core/domain/calls/endings.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { addLoadSample } from '../../../../core/state/calls/load-steps.ts'
import { finishCall, insertCall } from '../../../../core/state/calls/running-calls.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { HOUR_MS, queuedCall, ranCall, trunkOf } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'

t.test("a project's metrics count all of its calls, with and without a trunk", async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const one = await trunkOf(w, 'One')
  const other = await trunkOf(w, 'Other')
  const read = async (query = '') => (await w.ask('GET', `/v1/metrics${query}`)).body
  const empty = await read()
  t.match(empty, { attempts: 0, answered: 0, step_seconds: 3600, window_hours: 24 })
  t.equal(empty.series.length, 25, 'a window begins at a step boundary and includes steps without calls')

  await ranCall(w, { call: { trunk_id: one }, seconds: 60 })
  await ranCall(w, { call: { trunk_id: other }, seconds: 31, hours_ago: 2 })
  await ranCall(w, { call: { trunk_id: one }, hours_ago: 2, cause: 'refused', sip_code: 486 })
  await ranCall(w, { call: { origin: 'rest' }, seconds: 7, hours_ago: 30 })
  await ranCall(w, { call: { trunk_id: one, origin: 'test' }, seconds: 5 })

  const day = await read('?window=24h')
  t.match(day, { attempts: 3, answered: 2 })
  const at = iso(Math.floor((w.clock.now() - 2 * HOUR_MS) / HOUR_MS) * HOUR_MS)
  t.match(
    day.series.find((step: { at: string }) => step.at === at),
    { attempts: 2, answered: 1 },
  )
  t.match(await read('?window=1h'), { attempts: 1, answered: 1, step_seconds: 60, window_hours: 1 })
  t.match(await read('?window=7d'), { attempts: 4, answered: 3 }, 'calls without a trunk count too')
  const lone = (await w.ask('GET', `/v1/trunks/${one}/metrics?window=7d`)).body
  t.match(lone, { attempts: 2, answered: 1 }, 'only calls of the trunk count for it')
})

t.test('the load of a step is the number of calls at once, running calls included', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const running = async () => {
    const sid = newId.call()
    const queued_at = iso(w.clock.now())
    await w.state.transaction(trx => insertCall(trx, queuedCall(w, sid, queued_at), w.clock.now()))
    return sid
  }
  const load = async (minutes_ago: number) => {
    const { series } = (await w.ask('GET', '/v1/metrics?window=1h')).body
    const { concurrent_calls_max, concurrent_calls_mean } = series.at(-1 - minutes_ago)
    return [concurrent_calls_max, concurrent_calls_mean]
  }
  t.same(await load(0), [0, 0])
  const sids = [await running(), await running(), await running(), await running()]
  t.equal((await load(0))[0], 4, 'calls that began after the last sample count')
  // The clock stands at 56 s of a minute.
  await addLoadSample(w.state.db, w.clock.now(), 5000)
  t.same(await load(0), [4, 0.4], '20 call-seconds in 56 seconds')
  clock.move(60_000)
  await addLoadSample(w.state.db, w.clock.now(), 56_000)
  t.same(await load(0), [4, 3.9], 'the calls go on')
  t.same(await load(1), [4, 0.3], 'the minute before is unchanged')
  for (const sid of sids)
    await w.state.transaction(trx =>
      finishCall(trx, sid, {
        ending: ending({ cause: 'caller_hung_up', answered: false }),
        ended_ms: w.clock.now(),
        pdd_ms: null,
        media: null,
      }),
    )
  clock.move(60_000)
  await addLoadSample(w.state.db, w.clock.now(), 5000)
  t.same(await load(0), [0, 0], 'calls that ended count no more, though they ended a minute ago')
  t.same(await load(1), [4, 3.7])
})

t.test('metrics report the current live calls, calls of the last minute, spend and nodes', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  await ranCall(w, { seconds: 1 })
  await ranCall(w, { seconds: 1, hours_ago: 1 })
  const now = iso(w.clock.now())
  const lost = iso(w.clock.now() - HOUR_MS)
  const node = (id: string, heartbeat_at: string) => ({
    id,
    kind: 'signaling' as const,
    pid: 1,
    started_at: now,
    heartbeat_at,
  })
  await w.state.db
    .insertInto('node')
    .values([node('node_a', now), node('node_b', lost)])
    .execute()
  const { body } = await w.ask('GET', '/v1/metrics')
  t.match(body.now, { live_calls: 0, calls_last_minute: 1, spend_today_minor: 0 })
  t.same(
    body.nodes.map((one: { id: string; state: string }) => [one.id, one.state]),
    [
      ['node_a', 'up'],
      ['node_b', 'lost'],
    ],
  )
  const blind = await w.newKey({ scopes: '["call_history:read"]' })
  t.equal((await w.ask('GET', '/v1/metrics', { key: blind })).status, 403)
})

t.test('series are of the project, or of the one trunk, subaccount or application that is asked for', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const one = await trunkOf(w, 'One')
  const other = await trunkOf(w, 'Other')
  const application = { name: 'Menu', voice_url: 'https://app.example/menu', voice_method: 'POST' }
  const made = await w.ask('POST', '/v1/voice/applications', { body: application, headers: { 'Idempotency-Key': 'a' } })
  const application_id = made.body.id as string
  const read = async (query = '') => w.ask('GET', `/v1/metrics/series?window=1h${query}`)
  const leg = (mos: number) => ({ packets_received: 100, packets_lost: 0, jitter_ms: 1, mos })
  const media = { a: leg(4.4), b: leg(4.2), mode: 'relay' }
  await ranCall(w, { call: { trunk_id: one }, seconds: 60, pdd_ms: 900, media })
  await ranCall(w, { call: { trunk_id: one }, seconds: 20, pdd_ms: 1400 })
  await ranCall(w, { call: { trunk_id: one }, cause: 'refused', sip_code: 486 })
  await ranCall(w, { call: { trunk_id: other, application_id }, cause: 'refused', sip_code: 503 })
  await ranCall(w, { call: { origin: 'rest', application_id }, seconds: 5 })

  const of_one = (await read(`&trunk_id=${one}`)).body
  t.match(of_one.subject, { kind: 'trunk', id: one })
  t.same(of_one.total, { attempts: 3, answered: 2, acd_seconds: 40, mos: 4.3, pdd_p95_ms: 1450 })
  t.same(of_one.failures, [{ reason: 'peer_busy', calls: 1 }])
  t.match(of_one.ceilings, { concurrency: 1000, cps: 100 })
  t.equal(of_one.series.length, 61)
  t.match(of_one.series.at(-1), { attempts: 3, failures: [{ reason: 'peer_busy', calls: 1 }] })
  t.match((await read()).body.total, { attempts: 5, answered: 3 }, 'a call of an application counts once')
  t.match((await read(`&application_id=${application_id}`)).body, {
    total: { attempts: 2, answered: 1 },
    now: { live_calls: 0, spend_today_minor: null, calls_last_second: null },
    ceilings: { concurrency: null },
  })
  const listed = async (query: string) => (await w.ask('GET', `/v1/calls?${query}`)).body.data.length
  t.equal(await listed(`trunk_id=${one}&reason=peer_busy`), 1, 'the calls behind a bar of failures')
  t.equal(await listed(`application_id=${application_id}`), 2)
  const ended = iso(clock.now())
  t.equal(await listed(`ended_since=${ended}`), 5, 'from the instant on')
  t.equal(await listed(`ended_before=${ended}`), 0, 'not with it')

  const sub = await w.ask('POST', '/v1/subaccounts', {
    body: { name: 'Branch', configuration: { currency: 'NGN', max_concurrent: 7 } },
    headers: { 'Idempotency-Key': 'b' },
  })
  const subaccount_id = (sub.body.subaccount ?? sub.body).id as string
  await w.state.db.updateTable('trunk').set({ subaccount_id }).where('id', '=', other).execute()
  const of_sub = (await read(`&subaccount_id=${subaccount_id}`)).body
  t.match(of_sub, { total: { attempts: 1, answered: 0 }, ceilings: { concurrency: 7 } })

  const sid = newId.call()
  const queued = queuedCall(w, sid, iso(clock.now()), { trunk_id: other, application_id })
  await w.state.transaction(trx => insertCall(trx, queued, clock.now()))
  await addLoadSample(w.state.db, clock.now(), 5000)
  for (const query of [
    '',
    `&trunk_id=${other}`,
    `&subaccount_id=${subaccount_id}`,
    `&application_id=${application_id}`,
  ])
    t.equal((await read(query)).body.series.at(-1).concurrent_calls_max, 1, query)
  t.equal((await read(`&trunk_id=${one}`)).body.series.at(-1).concurrent_calls_max, 0)

  t.equal((await read(`&trunk_id=${one}&application_id=${application_id}`)).status, 422)
  await w.state.db.updateTable('trunk').set({ project_id: 'prj_of_somebody_else' }).where('id', '=', one).execute()
  t.equal((await read(`&trunk_id=${one}`)).status, 404, 'of another project')
})
