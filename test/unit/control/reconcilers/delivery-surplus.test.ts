import { storeCallback } from '../../../../core/state/delivery/outbox.ts'
import { takeDueCallbacks } from '../../../../core/state/delivery/outbox-delivery.ts'
import { giveUpSurplus } from '../../../../core/state/delivery/surplus.ts'
import { queueEvent } from '../../../../core/state/delivery/webhook-endpoints.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { UNHEARD_PORT } from '../../../support/ports.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

const URL = `http://127.0.0.1:${UNHEARD_PORT}/`

const put = (w: ControlPlane, call_sid: string) =>
  w.state.transaction(trx =>
    storeCallback(trx, {
      ...{ kind: 'status_callback', call_sid, project_id: w.demo.project_id, url: `${URL}?pin=1`, method: 'POST' },
      ...{ parameters: {}, now_ms: w.clock.now() },
    }),
  )

async function endpoint(w: ControlPlane): Promise<string> {
  const made = await w.ask('POST', '/v1/webhook-endpoints', {
    body: { url: URL, event_kinds: ['call.ended'] },
    headers: { 'Idempotency-Key': freshKey() },
  })
  return made.body.endpoint.id
}

const event = (w: ControlPlane, n: number) =>
  w.state.transaction(trx =>
    queueEvent(trx, { project_id: w.demo.project_id, kind: 'call.ended', data: { n } }, w.clock.now()),
  )

t.test('a project whose servers take nothing keeps so much waiting, and learns what was given up', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const [id, rivals] = [await endpoint(w), await endpoint(rival)]
  for (let n = 0; n < 3; n++) {
    await put(rival, `CArival${n}`)
    await event(rival, n)
  }
  for (let n = 0; n < 9; n++) {
    await put(w, `CA${n}`)
    await event(w, n)
  }
  const [sent] = await takeDueCallbacks(w.state.db, {
    ...{ by: 'mac_1 boot_1 1', now_ms: w.clock.now(), lease_ms: 25_000, limit: 1 },
    ...{ but_not: [], but_not_of: [rival.demo.project_id], under_way: [] },
  })
  t.equal(sent?.call_sid, 'CA0')
  const { project_id } = w.demo
  t.same(await giveUpSurplus(w.state, 5), [
    { project_id, table: 'outbox', rows: 4 },
    { project_id, table: 'webhook_delivery', rows: 4 },
  ])
  const callbacks = await w.state.db.selectFrom('outbox').selectAll().orderBy('id').execute()
  t.same(
    callbacks.filter(({ given_up }) => given_up === 1).map(({ call_sid }) => call_sid),
    ['CA1', 'CA2', 'CA3', 'CA4'],
    'the oldest, but not the one that is being sent, and none of the rival',
  )
  const events = await w.state.db.selectFrom('call_event').selectAll().orderBy('id').execute()
  t.same(
    events.map(({ call_sid, kind, number }) => [call_sid, kind, number]),
    ['CA1', 'CA2', 'CA3', 'CA4'].map(call_sid => [call_sid, 'warning', 15_003]),
  )
  t.match(JSON.parse(events[0]?.detail ?? ''), {
    url: `${URL}?pin=1`,
    detail: 'a callback was given up, because more than 5 callbacks of the project waited',
  })
  const told = async (of: ControlPlane, endpoint_id: string) =>
    (await of.ask('GET', `/v1/webhook-endpoints/${endpoint_id}/deliveries`)).body.data.map(
      ({ state, last_error }: { state: string; last_error: string | null }) => [state, last_error],
    )
  const why = 'given up, because more than 5 events of the project waited'
  t.same(await told(w, id), [...Array(5).fill(['pending', null]), ...Array(4).fill(['failed', why])])
  t.same(await told(rival, rivals), Array(3).fill(['pending', null]))
  t.same(await giveUpSurplus(w.state, 5), [], 'what is left may wait')
})
