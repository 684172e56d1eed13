import { webhookDeliveries } from '../../../../control/reconcilers/webhook-deliveries.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import {
  insertDelivery,
  listEndpoints,
  queueEvent,
  settleDelivery,
} from '../../../../core/state/delivery/webhook-endpoints.ts'
import { insertMember } from '../../../../core/state/people/organizations.ts'
import { alertWorld, setBalance } from '../../../support/alert-world.ts'
import { freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { hashOnce } from '../../../support/passwords.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

t.test('alerts about money reach billing members, by the API and by mail, and no others reach them', async t => {
  const w = await alertWorld(t)
  const { organization_id } = await w.state.db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const password_hash = await hashOnce('a long enough password')
  await w.state.transaction(async trx => {
    for (const name of ['billing', 'engineer', 'viewer'] as const) {
      const member = { id: `mem_${name}`, organization_id, email: `${name}@acme.example`, role: `org:${name}` } as const
      await insertMember(trx, { ...member, password_hash, operator: 0, created_at: iso(w.clock.now()) })
    }
  })
  await setBalance(w, 100)
  const billing = await w.newKey({ role: 'org:billing', scopes: JSON.stringify(['billing:read']) })
  const engineer = await w.newKey({ role: 'org:engineer' })
  const kinds = async (key: string) =>
    (await w.ask('GET', '/v1/alerts', { key })).body.alerts.map((alert: { kind: string }) => alert.kind)
  t.same(await kinds(billing), ['balance_low'])
  t.same(await kinds(engineer), [])
  const policies = (await w.ask('GET', '/v1/alerts/policies', { key: billing })).body.data
  t.same(policies.map((policy: { kind: string }) => policy.kind).sort(), [
    'balance_low',
    'spend_daily',
    'spend_monthly',
  ])
  const mails = await w.state.db.selectFrom('alert_notification').select('recipient').execute()
  const told = mails.map(({ recipient }) => recipient)
  t.ok(told.includes('billing@acme.example'))
  t.notOk(told.includes('engineer@acme.example'), 'who may not see it is sent none')
  t.notOk(told.includes('viewer@acme.example'))
  const others = await w.newKey({ role: 'org:billing', scopes: JSON.stringify(['call_history:read']) })
  t.match(await w.ask('GET', '/v1/alerts', { key: others }), { status: 403, body: { code: 'scope_required' } })
})

t.test('the scope of an alert policy must be something that the organization has', async t => {
  const w = await alertWorld(t)
  await w.look()
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const trunk = {
    ...{ name: 'Office', direction: 'both', auth_mode: 'ip_allow_list', sources: [], codecs: ['PCMA'], targets: [] },
    ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
  }
  const idempotent = () => ({ 'Idempotency-Key': freshKey() })
  const own = (await w.ask('POST', '/v1/trunks', { body: trunk, headers: idempotent() })).body.trunk.id
  const foreign = (await rival.ask('POST', '/v1/trunks', { body: trunk, headers: idempotent() })).body.trunk.id
  const { data } = (await w.ask('GET', '/v1/alerts/policies')).body
  const policy = data.find((row: { kind: string }) => row.kind === 'endpoint_health')
  const put = (revision: number, type: string, id: string | null) =>
    w.ask('PATCH', `/v1/alerts/policies/${policy.id}`, {
      body: { scope: { type, id, label: 'One' } },
      headers: { ...idempotent(), 'If-Match': `"${revision}"` },
    })
  for (const [type, id] of [
    ['webhook_endpoint', 'nonsense'],
    ['trunk', foreign],
    ['subaccount', own],
    ['account', 'nonsense'],
    ['organization', 'nonsense'],
  ] as const)
    t.match(await put(policy.revision, type, id), { status: 422, body: { errors: [{ pointer: '/scope/id' }] } }, type)
  t.match(await put(policy.revision, 'trunk', own), { status: 200, body: { scope: { type: 'trunk', id: own } } })
  t.match(await put(policy.revision + 1, 'organization', null), { status: 200 })
  const spend = data.find((row: { kind: string }) => row.kind === 'spend_daily')
  const bound = (threshold: object) =>
    w.ask('PATCH', `/v1/alerts/policies/${spend.id}`, {
      body: { threshold },
      headers: { ...idempotent(), 'If-Match': `"${spend.revision}"` },
    })
  for (const threshold of [{ percent: '0' }, { percent: '0.00' }, { amount_minor: 0 }])
    t.match(await bound(threshold), { status: 422 }, `${JSON.stringify(threshold)} would fire where nothing is spent`)
  t.match(await bound({ percent: '0.01' }), { status: 200 })
})

t.test('a webhook endpoint that fails for an hour has one alert, which names it, until it answers again', async t => {
  const w = await alertWorld(t)
  const hook = { url: 'https://hooks.example.com/in', event_kinds: ['call.ended'] }
  const idempotent = { 'Idempotency-Key': freshKey() }
  const { body } = await w.ask('POST', '/v1/webhook-endpoints', { body: hook, headers: idempotent })
  let status = 503
  const tries: number[] = []
  const http = {
    async request({ url = '' }) {
      tries.push(w.clock.now())
      return { ok: true, status, headers: {}, body: Buffer.alloc(0), url, redirects: 0, duration_ms: 1 } as const
    },
    close: async () => undefined,
  }
  const deliveries = webhookDeliveries(http)
  const deliver = async () => {
    await deliveries.run(w)
    await deliveries.stop?.()
  }
  const begun_ms = w.clock.now()
  const event = { project_id: w.demo.project_id, kind: 'call.ended' as const, data: {} }
  await w.state.transaction(trx => queueEvent(trx, event, begun_ms))
  for (let minute = 0; minute <= 61; minute++) {
    await deliver()
    await w.look()
    await w.pass(60_000)
  }
  t.ok((tries.at(-1) ?? 0) - begun_ms > 30 * 60_000, 'it is tried again and again')
  const subject = { type: 'webhook_endpoint', id: body.endpoint.id, name: 'hooks.example.com' }
  const [alert, ...others] = await w.alerts('endpoint_health')
  t.same(others, [], 'an hour of failures is one alert')
  t.match(alert, { state: 'firing', subject })
  t.match(JSON.stringify(alert.evidence), iso(begun_ms), 'it says since when events wait')
  status = 204
  await w.pass(3_600_000)
  await deliver()
  await w.look()
  await w.pass(1000)
  const later = w.clock.now()
  await w.state.transaction(trx => queueEvent(trx, event, later))
  await deliver()
  await w.look()
  t.match(await w.alerts('endpoint_health'), [{ state: 'resolved', subject }])
})

t.test(
  'a webhook endpoint that fails twice is the subject of an alert within a minute, until it takes two events',
  async t => {
    const w = await alertWorld(t)
    const hook = { url: 'https://app.example.com/secret-path', event_kinds: ['call.ended'] }
    await w.ask('POST', '/v1/webhook-endpoints', { body: hook, headers: { 'Idempotency-Key': freshKey() } })
    const [endpoint] = await listEndpoints(w.state.db, w.demo.project_id)
    if (!endpoint) throw new Error('there is no endpoint')
    const queue = (event_id: string) =>
      w.state.transaction(trx =>
        insertDelivery(trx, endpoint, { event_id, event_kind: 'call.ended', payload: '{}' }, w.clock.now()),
      )
    const settle = (id: string, state: 'pending' | 'delivered', attempts = 1) =>
      settleDelivery(
        w.state.db,
        { id, lease_until: null },
        {
          state,
          attempts,
          last_status: state === 'pending' ? 500 : 200,
          last_error: state === 'pending' ? 'answered with 500' : null,
          last_attempt_at: iso(w.clock.now()),
          delivered_at: state === 'pending' ? null : iso(w.clock.now()),
          next_attempt_at: iso(w.clock.now()),
        },
      )
    const first = await queue('evt_1')
    await settle(first.id, 'pending')
    await w.look()
    t.same(await w.alerts('endpoint_health'), [], 'one failure is none')
    // The second try is 10 to 12 s after the first (webhook-deliveries.ts).
    await w.pass(12_000)
    await settle(first.id, 'pending', 2)
    await w.look()
    const [alert, ...others] = await w.alerts('endpoint_health')
    t.same(others, [])
    t.match(alert, {
      state: 'firing',
      subject: { type: 'webhook_endpoint', id: endpoint.id, name: 'app.example.com' },
      trunk_id: null,
    })
    t.match(JSON.stringify(alert), /answered with 500/)
    t.notMatch(JSON.stringify(alert), /secret-path/, 'a mail shows no secret of the URL')
    await w.pass(1000)
    await settle(first.id, 'delivered')
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'firing' }], 'one success does not end it')
    await w.pass(1000)
    await settle((await queue('evt_2')).id, 'delivered')
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'resolved' }])

    const waiting = await queue('evt_3')
    await settle(waiting.id, 'pending', 9)
    await w.pass(1000)
    await settle((await queue('evt_4')).id, 'delivered')
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'resolved' }], 'it answers, though an old one still waits')
  },
)
