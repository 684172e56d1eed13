import { ending } from '../../../../core/domain/calls/endings.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { addLoadSample } from '../../../../core/state/calls/project-load.ts'
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
