import { exposeControl } from '../../../../control/metrics.ts'
import { createMetrics } from '../../../../core/runtime/metrics.ts'
import { deleteCarrier } from '../../../../core/state/configuration/carriers.ts'
import { limitedSources } from '../../../../core/state/configuration/sources.ts'
import { alertWorld, report } from '../../../support/alert-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import { type Answer, type ControlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, operatorKey } from '../../../support/operators.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

// Who learns that addresses overlap: those of two customers, or those of a customer and a carrier.

const now = '2026-03-11T12:00:00.000Z'

const createTrunk = (w: ControlPlane, name: string, source: string): Promise<Answer> =>
  w.ask('POST', '/v1/trunks', {
    headers: { 'Idempotency-Key': freshKey() },
    body: {
      ...{ name, direction: 'both', auth_mode: 'ip_allow_list', sources: [source], codecs: ['PCMA'], targets: [] },
      ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
    },
  })

t.test('operators see sources that overlap or wait for approval; a customer sees only its own', async t => {
  const w = await alertWorld(t)
  const metrics = createMetrics('test')
  const exposed = exposeControl({ ...w, metrics })
  t.teardown(() => exposed.stop())
  // A scrape reports the counts of the one before it.
  const counted = async (): Promise<string[]> => {
    await metrics.metrics()
    return [...(await metrics.metrics()).matchAll(/^strowger_(sources_\w+)\{.*\} (\d+)$/gm)].map(
      ([, name, count]) => `${name} ${count}`,
    )
  }
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  t.same(await counted(), ['sources_waiting 0', 'sources_name_only 0'])

  t.equal((await createTrunk(w, 'Ikeja office', '192.0.2.7/32')).status, 201)
  const second = await createTrunk(rival, 'Rival office', '192.0.2.0/24')
  t.match(second.body.trunk.authentication.sources, [{ standing: 'name_only' }])
  await w.pass(1000)
  t.equal((await createTrunk(rival, 'Wide office', '10.0.0.0/8')).status, 201)
  t.same(await counted(), ['sources_waiting 1', 'sources_name_only 1'])
  const listed = await limitedSources(w.state.db, now, { limit: 9 })
  t.match(listed, [
    { cidr: '192.0.2.0/24', overlaps: [{ cidr: '192.0.2.7/32', trunk_name: 'Ikeja office' }] },
    { cidr: '10.0.0.0/8', standing: 'pending_approval' },
  ])
  const told = second.text + (await rival.ask('GET', '/v1/audit?range=all')).text
  t.notMatch(told, /192\.0\.2\.7|Ikeja/, 'the second customer does not learn whom it overlaps')
})

t.test('a carrier that overlaps a source alerts only its customer, without naming the carrier', async t => {
  const w = await alertWorld(t)
  const [rival, bystander] = [
    asTenant(w, await addTenant(w.state, w.settings.master_key, [])),
    asTenant(w, await addTenant(w.state, w.settings.master_key, [])),
  ]
  const created = await createTrunk(w, 'Ikeja office', '203.0.113.0/25')
  await w.pass(1000)
  const wide = await createTrunk(rival, 'Rival office', '203.0.113.128/25')
  await createTrunk(bystander, 'Other office', '198.51.100.0/24')
  const trunks = [created, wide].map(({ body }) => body.trunk)
  for (const trunk of trunks) await report.applied(w, trunk.id, 1, null)
  await w.look()
  t.same(await w.alerts('trunk_apply_failed'), [])

  const carrier = { name: 'Lagos Telecom', codecs: ['PCMA'], targets: [], routes: [] }
  const car = await addCarrier(w.state, { ...carrier, sources: ['203.0.113.9/32', '203.0.113.192/26'] }, now)
  t.match(
    await limitedSources(w.state.db, now, { limit: 9 }),
    ['203.0.113.9/32', '203.0.113.192/26'].map(cidr => ({ carrier: { cidr, name: 'Lagos Telecom' } })),
    'operators see the carrier of each limited source',
  )
  t.equal((await createTrunk(bystander, 'Wide office', '10.0.0.0/8')).status, 201)
  await w.pass(1000)
  t.equal((await createTrunk(bystander, 'Another wide office', '11.0.0.0/8')).status, 201)
  const ask = asks(w, await operatorKey(w))
  const whole = (await ask('GET', '/source-approvals')).body
  t.same(Object.keys(whole), ['data'])
  t.same(
    whole.data.map(({ cidr }: { cidr: string }) => cidr),
    ['10.0.0.0/8', '11.0.0.0/8', '203.0.113.0/25', '203.0.113.128/25'],
  )
  const paged: unknown[] = []
  for (let more = ''; paged.length < 9; ) {
    const { status, body } = await ask('GET', `/source-approvals?limit=1${more}`)
    t.match([status, body.data.length], [200, 1])
    paged.push(...body.data)
    if (body.next_cursor === undefined) break
    more = `&cursor=${body.next_cursor}`
  }
  t.same(paged, whole.data, 'pages of one source have each of them once, in the same order')
  t.equal((await ask('GET', '/source-approvals?cursor=W10')).status, 422)
  await w.look()
  const seen = async (of: ControlPlane) => (await of.ask('GET', '/v1/alerts?range=90d')).body.alerts
  for (const [of, trunk, cidr] of [
    [w, trunks[0], '203.0.113.0/25'],
    [rival, trunks[1], '203.0.113.128/25'],
  ] as const) {
    const alerts = await seen(of)
    t.match(alerts, [{ kind: 'trunk_apply_failed', state: 'firing', severity: 'critical', trunk_id: trunk.id }])
    t.equal(alerts.length, 1)
    t.ok(alerts[0].reason.includes(cidr), alerts[0].reason)
    t.ok(alerts[0].remediation.includes(trunk.authentication.signaling_fqdn ?? trunk.signaling_fqdn))
    const audit = (await of.ask('GET', '/v1/audit?range=all')).text
    t.match(audit, /alert\.fired/)
    t.notMatch(
      JSON.stringify(alerts) + audit,
      /Lagos Telecom|car_|203\.0\.113\.(9|192)\b/,
      'nothing reveals the carrier',
    )
  }
  t.same(await seen(bystander), [])
  t.notMatch((await bystander.ask('GET', '/v1/audit?range=all')).text, /alert\.fired/)

  await w.look()
  t.equal((await seen(w)).length, 1, 'alerted once')
  await w.state.transaction(trx => deleteCarrier(trx, car))
  await w.look()
  t.match(await seen(w), [{ state: 'resolved' }])
})
