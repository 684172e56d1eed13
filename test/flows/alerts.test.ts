import { iso } from '../../core/runtime/clock.ts'
import { noteGuesser } from '../../core/state/alerts/traffic-facts.ts'
import { type AlertWorld, alertWorld, pricedCall, report, setBalance } from '../support/alert-world.ts'
import { freshKey } from '../support/control-plane.ts'
import t from '../support/harness/index.ts'
import { statementsIn } from '../support/query-plans.ts'
import { addTenant } from '../support/tenants.ts'

// Each kind of alert fires on its condition and ends by its rule, based on the rows that calls and nodes write. In
// fraud.test.ts the three kinds about fraud also fire on real calls.

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

async function addTrunk(w: AlertWorld, over: object = {}): Promise<string> {
  const { body, text } = await w.ask('POST', '/v1/trunks', {
    headers: { 'Idempotency-Key': freshKey() },
    body: {
      ...{ name: 'Branch', direction: 'both', auth_mode: 'digest', sources: [], codecs: ['PCMA'] },
      ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed', targets: [] },
      ...over,
    },
  })
  if (!body.trunk) throw new Error(text)
  return body.trunk.id
}

const spend = (w: AlertWorld, day: string, spent_minor: number) =>
  w.state.db
    .insertInto('spend_day')
    .values({ level: 'project', subject_id: w.demo.project_id, day, spent_minor })
    .onConflict(conflict => conflict.columns(['level', 'subject_id', 'day']).doUpdateSet({ spent_minor }))
    .execute()

t.test('balance_low: fires below the amount, and resolves only at the amount of the rule', async t => {
  const w = await alertWorld(t)
  const balance = (minor: number, held_minor = 0) => setBalance(w, minor, held_minor)
  await balance(500_000)
  t.same(await w.alerts('balance_low'), [], 'at the threshold all is well')
  await balance(500_000, 1)
  const [alert] = await w.alerts('balance_low')
  t.match(alert, {
    state: 'firing',
    severity: 'warning',
    source_state: 'measured',
    subject: { type: 'account' },
    reason: /balance of .* is NGN 4999\.99, below NGN 5000\.00/,
    remediation: /Top up/,
    policy_revision: 1,
  })
  t.match(
    alert.evidence.map((one: { label: string; amount_minor: number; held: boolean }) => [one.amount_minor, one.held]),
    [
      [499_999, false],
      [1, true],
      [500_000, false],
    ],
  )
  t.same(alert.suggested_actions, [{ href: '/v1/billing/balance', label: 'See the balance' }])
  await balance(0)
  t.match(await w.alerts('balance_low'), [{ severity: 'critical', id: alert.id }], 'one alert, brought up to date')
  await balance(599_999)
  t.match(await w.alerts('balance_low'), [{ state: 'firing' }], 'above the threshold is not well yet')
  await balance(600_000)
  t.match(await w.alerts('balance_low'), [{ state: 'resolved', resolved_at: '2026-03-11T12:00:00.000Z' }])
  await w.pass(1000)
  await balance(1)
  t.match(await w.alerts('balance_low'), [{ state: 'firing' }, { state: 'resolved' }], 'and it may fire anew')
})

t.test('spend_daily: fires at a share of the cap, until the organization’s day ends', async t => {
  const w = await alertWorld(t)
  await w.state.db
    .insertInto('project_ceiling')
    .values({
      ...{ project_id: w.demo.project_id, concurrency: null, cps: null, daily_spend_cap_minor: 1000 },
      ...{ velocity_cap_minor: null, max_call_duration_seconds: null, max_destination_rate_minor: null },
      ...{ revision: 1, updated_at: '2026-03-01T00:00:00.000Z' },
    })
    .execute()
  await spend(w, '2026-03-11', 799)
  await w.look()
  t.same(await w.alerts('spend_daily'), [])
  await spend(w, '2026-03-11', 800)
  await w.look()
  t.match(await w.alerts('spend_daily'), [{ state: 'firing', severity: 'warning', subject: { type: 'organization' } }])
  await spend(w, '2026-03-11', 1000)
  await w.look()
  t.match(await w.alerts('spend_daily'), [{ severity: 'critical' }], 'at the cap it is grave')
  await w.pass(10 * HOUR_MS + 59 * MINUTE_MS)
  await w.look()
  t.match(await w.alerts('spend_daily'), [{ state: 'firing' }], 'at 23:59 in Lagos it is still that day')
  await w.pass(MINUTE_MS)
  await w.look()
  t.match(await w.alerts('spend_daily'), [{ state: 'resolved' }], 'at midnight there the alert ends')
})

t.test('spend_daily: a policy may cover one trunk', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  const { data } = (await w.ask('GET', '/v1/alerts/policies')).body
  const policy = data.find((one: { kind: string }) => one.kind === 'spend_daily')
  const changed = await w.ask('PATCH', `/v1/alerts/policies/${policy.id}`, {
    headers: { 'If-Match': '"1"', 'Idempotency-Key': freshKey() },
    body: { scope: { type: 'trunk', id: trunk_id, label: 'Branch' }, threshold: { amount_minor: 500, percent: null } },
  })
  t.equal(changed.status, 200, changed.text)
  await spend(w, '2026-03-11', 100_000)
  await w.look()
  t.same(await w.alerts('spend_daily'), [], 'what others spend does not count')
  await w.state.db
    .insertInto('spend_day')
    .values({ level: 'trunk', subject_id: trunk_id, day: '2026-03-11', spent_minor: 500 })
    .execute()
  await w.look()
  t.match(await w.alerts('spend_daily'), [{ subject: { type: 'trunk', id: trunk_id }, trunk_id, policy_revision: 2 }])
})

t.test('spend_daily: fires for the cap of a policy, a subtrunk and a subaccount', async t => {
  const w = await alertWorld(t)
  const { db } = w.state
  const project_id = w.demo.project_id
  const trunk_id = await addTrunk(w)
  const at = '2026-03-01T00:00:00.000Z'
  const none = { max_call_duration_seconds: null, max_destination_rate_minor: null, revision: 1 }
  const caps = { daily_spend_cap_minor: 1000, created_at: at, updated_at: at, ...none }
  await db
    .insertInto('subtrunk')
    .values({
      ...{ id: 'stk_1', project_id, trunk_id, name: 'Ikeja', status: 'enabled' },
      ...{ concurrency: null, cps: null, velocity_cap_minor: null, ...caps },
    })
    .execute()
  await db
    .insertInto('subaccount')
    .values({
      ...{ id: 'sub_1', project_id, name: 'North', status: 'enabled', currency: 'NGN' },
      ...{ max_concurrent: null, max_cps: null, ...caps },
    })
    .execute()
  const policy = await db
    .selectFrom('outbound_policy')
    .select(['id', 'name'])
    .where('project_id', '=', project_id)
    .where('system_default', '=', 1)
    .executeTakeFirstOrThrow()
  await db.updateTable('outbound_policy').set({ daily_spend_limit_minor: 1000 }).where('id', '=', policy.id).execute()
  const spent = (level: 'policy' | 'subtrunk' | 'subaccount', subject_id: string) =>
    db.insertInto('spend_day').values({ level, subject_id, day: '2026-03-11', spent_minor: 980 }).execute()
  await w.look()
  t.same(await w.alerts('spend_daily'), [])
  await spent('policy', policy.id)
  await spent('subtrunk', 'stk_1')
  await spent('subaccount', 'sub_1')
  await w.look()
  const fired = await w.alerts('spend_daily')
  t.same(
    new Set(fired.map(({ reason, subject, trunk_id }) => `${reason} ${subject.type} ${subject.id} ${trunk_id}`)),
    new Set([
      `Outbound policy ${policy.name} spent NGN 9.80 today, at or above NGN 8.00. organization ${project_id} null`,
      `Subtrunk Ikeja spent NGN 9.80 today, at or above NGN 8.00. trunk ${trunk_id} ${trunk_id}`,
      'Subaccount North spent NGN 9.80 today, at or above NGN 8.00. subaccount sub_1 null',
    ]),
  )
})

t.test('spend_monthly: fires at an amount, until the month ends', async t => {
  const w = await alertWorld(t)
  await spend(w, '2026-02-28', 90_000_000)
  await spend(w, '2026-03-02', 60_000_000)
  await w.look()
  t.same(await w.alerts('spend_monthly'), [], 'other months do not count')
  await spend(w, '2026-03-11', 40_000_000)
  await w.look()
  t.match(await w.alerts('spend_monthly'), [{ state: 'firing', reason: /NGN 1000000\.00 this month/ }])
  await w.pass(15 * DAY_MS)
  await w.look()
  t.match(await w.alerts('spend_monthly'), [{ state: 'firing' }])
  await w.pass(6 * DAY_MS)
  await w.look()
  t.match(await w.alerts('spend_monthly'), [{ state: 'resolved' }])
})

t.test(
  'spend_velocity: counts money within the window, with calls in progress, and resolves after a calm period',
  async t => {
    const w = await alertWorld(t)
    const trunk_id = await addTrunk(w)
    const call = { trunk_id, to: '+2348030000001', rate_prefix: '234', minute_minor: 200, charge_minor: 700_000 }
    await pricedCall(w, call)
    await pricedCall(w, { ...call, live: true })
    await w.look()
    t.same(await w.alerts('spend_velocity'), [], 'two calls are too few')
    await pricedCall(w, { ...call, live: true })
    await w.look()
    const [alert] = await w.alerts('spend_velocity')
    t.match(alert, { state: 'firing', severity: 'critical', trunk_id, reason: /NGN 21000\.00 within 5 min/ })
    t.match(alert.evidence[3], { text: '+234 Somewhere', note: '3 of 3 calls' })
    await w.pass(5 * MINUTE_MS + 1)
    await w.look()
    await w.pass(9 * MINUTE_MS)
    await w.look()
    t.match(await w.alerts('spend_velocity'), [{ state: 'firing' }], 'calm for nine minutes is not enough')
    await w.pass(MINUTE_MS)
    await w.look()
    t.match(await w.alerts('spend_velocity'), [{ state: 'resolved' }])
  },
)

t.test('spend_velocity: the platform’s own ceiling applies whatever the policy says', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  const [policy] = (await w.ask('GET', '/v1/alerts/policies')).body.data.filter(
    (one: { kind: string }) => one.kind === 'spend_velocity',
  )
  t.match(policy, { platform_ceiling_minor: 20_000_000, platform_ceiling_window_seconds: 3600 })
  await w.ask('PATCH', `/v1/alerts/policies/${policy.id}`, {
    headers: { 'If-Match': '"1"', 'Idempotency-Key': freshKey() },
    body: { threshold: { amount_minor: 900_000_000 } },
  })
  const call = { trunk_id, to: '+2348030000001', rate_prefix: '234', minute_minor: 200, charge_minor: 10_000_000 }
  await pricedCall(w, call)
  await w.pass(30 * MINUTE_MS)
  await pricedCall(w, call)
  await w.look()
  t.match(await w.alerts('spend_velocity'), [{ reason: /NGN 200000\.00 within 1 h, at or above NGN 200000\.00/ }])
})

t.test('first_seen_high_cost_destination: fires until acknowledged, or for a day', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  const call = { trunk_id, to: '+88213555001', rate_prefix: '88213', minute_minor: 60_000, charge_minor: 60_000 }
  await pricedCall(w, { ...call, to: '+2348030000001', rate_prefix: '234', minute_minor: 200, charge_minor: 200 })
  await w.look()
  t.same(await w.alerts('first_seen_high_cost_destination'), [], 'a cheap destination is no news')
  await pricedCall(w, call)
  await w.look()
  const [alert] = await w.alerts('first_seen_high_cost_destination')
  t.match(alert, { state: 'firing', trunk_id, reason: /\+88213 \(Somewhere\) for the first time, at NGN 600\.00/ })
  const { body } = await w.ask('POST', `/v1/alerts/${alert.id}/acknowledge`)
  t.match(body, { state: 'resolved', acknowledged_at: '2026-03-11T12:00:00.000Z', acknowledged_by: String })
  await pricedCall(w, call)
  await w.look()
  t.equal((await w.alerts('first_seen_high_cost_destination')).length, 1, 'nobody is asked the same again that day')
  t.match((await w.ask('POST', `/v1/alerts/${alert.id}/acknowledge`)).body, { code: 'state_conflict' })

  await pricedCall(w, { ...call, to: '+88216555001', rate_prefix: '88216' })
  await w.look()
  await w.pass(DAY_MS)
  await w.look()
  t.match(
    (await w.alerts('first_seen_high_cost_destination')).map((one: { state: string }) => one.state),
    ['resolved', 'resolved'],
    'one that nobody acknowledged ends after 24 hours',
  )
})

t.test('the fraud watch leaves out quiet projects, and judges each from its first traffic on', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  const reads = () => statementsIn(w.state.db, db => w.lookForFraud({ ...w.state, db }))
  await reads()
  const alone = await reads()
  for (const name of ['Harbour', 'Quay', 'Pier']) await addTenant(w.state, w.settings.master_key, [], name)
  await reads()
  t.equal(await reads(), alone, 'quiet projects of other customers cost no read')
  await w.pass(10_000)
  const dear = { rate_prefix: '88213', minute_minor: 60_000, charge_minor: 60_000 }
  await pricedCall(w, { trunk_id, to: '+88213555001', ...dear })
  await reads()
  t.match(await w.alerts('first_seen_high_cost_destination'), [{ state: 'firing', trunk_id }])
  await w.pass(DAY_MS)
  await reads()
  t.match(await w.alerts('first_seen_high_cost_destination'), [{ state: 'resolved' }], 'an open alert is looked after')
})

t.test('new_source_ip: fires for an address that has never used the digest trunk', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  const call = { trunk_id, to: '+2348030000001', rate_prefix: '234', minute_minor: 200, charge_minor: 200 }
  await pricedCall(w, { ...call, source_ip: '192.0.2.1' })
  await w.look()
  t.same(await w.alerts('new_source_ip'), [], 'the first address of a trunk is not suspect')
  await w.pass(HOUR_MS)
  await pricedCall(w, { ...call, source_ip: '198.51.100.9' })
  await pricedCall(w, { ...call, source_ip: '192.0.2.1' })
  await w.look()
  const [alert, ...others] = await w.alerts('new_source_ip')
  t.same(others, [])
  t.match(alert, { state: 'firing', severity: 'warning', reason: /used from 198\.51\.100\.9/ })
  t.match(alert.evidence[0], { label: 'Address', text: '198.51.100.9', note: /, 1 call$/ })
  t.match(alert.evidence[1], { amount_minor: 200 })
  await w.ask('POST', `/v1/alerts/${alert.id}/acknowledge`)
  await w.look()
  t.match(await w.alerts('new_source_ip'), [{ state: 'resolved' }])
})

t.test('new_source_ip: fires for a stranger who was blocked after wrong passwords of the trunk', async t => {
  const w = await alertWorld(t)
  const [trunk_id, other] = [await addTrunk(w), await addTrunk(w, { name: 'Other branch' })]
  const call = { trunk_id, to: '+2348030000001', rate_prefix: '234', minute_minor: 200, charge_minor: 200 }
  await pricedCall(w, { ...call, source_ip: '192.0.2.1' })
  await w.look()
  const guess = (address: string) => noteGuesser(w.state.db, { trunk_id, address, now: iso(w.clock.now()) })
  await guess('192.0.2.1')
  await w.look()
  t.same(await w.alerts('new_source_ip'), [], 'a telephone of the customer that mistypes is no stranger')
  await w.pass(MINUTE_MS)
  await guess('203.0.113.66')
  await guess('203.0.113.66')
  await w.look()
  const [alert, ...more] = await w.alerts('new_source_ip')
  t.same(more, [], 'once')
  t.match(alert, {
    state: 'firing',
    severity: 'warning',
    trunk_id,
    reason: /203\.0\.113\.66.*guessed passwords of trunk/,
  })
  await pricedCall(w, { ...call, trunk_id: other, source_ip: '192.0.2.7' })
  await w.look()
  t.equal((await w.alerts('new_source_ip')).length, 1, 'and concerns no other trunk')
})

t.test(
  'endpoint_health: fires after misses in a row, resolves after as many good answers, and reports missing data',
  async t => {
    const w = await alertWorld(t)
    const target = (host: string) => ({ sip_uri: `sip:${host}`, transport: 'udp', priority: 10, weight: 100 })
    const trunk_id = await addTrunk(w, { targets: [target('a.example.com'), target('b.example.com')] })
    await w.state.db.updateTable('trunk').set({ status: 'enabled' }).where('id', '=', trunk_id).execute()
    const targets = await w.state.db.selectFrom('termination_target').select('id').orderBy('sip_uri').execute()
    const [first = '', second = ''] = targets.map(row => row.id)
    await report.target(w, first, 'degraded', 1)
    await report.target(w, second, 'healthy', 0)
    await w.look()
    t.same(await w.alerts('endpoint_health'), [])
    await report.target(w, first, 'degraded', 2)
    await w.look()
    const [alert] = await w.alerts('endpoint_health')
    t.match(alert, {
      state: 'firing',
      severity: 'warning',
      trunk_id,
      reason: /sip:a\.example\.com .* left 2 keep-alives unanswered/,
      evidence: [{}, { label: 'Last answer', text: 'none (the SIP server gave up with 408)' }],
    })
    t.match(alert.suggested_actions[0], { href: `/v1/trunks/${trunk_id}/tests` })

    await w.ask('POST', `/v1/alerts/${alert.id}/acknowledge`)
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'acknowledged' }], 'a word of a person does not end this one')

    await w.state.db.updateTable('node').set({ heartbeat_at: '2026-03-11T11:00:00.000Z' }).execute()
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'acknowledged', source_state: 'data_unavailable' }])
    await w.pass(30_000)
    await report.target(w, first, 'degraded', 3)
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'acknowledged', source_state: 'measured' }])

    await w.pass(30_000)
    await report.target(w, first, 'healthy', 0)
    await w.look()
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'acknowledged' }], 'the same answer looked at twice is one')
    await w.pass(30_000)
    await report.target(w, first, 'degraded', 1)
    await w.look()
    await w.pass(30_000)
    await report.target(w, first, 'healthy', 0)
    await w.look()
    await w.pass(30_000)
    await report.target(w, first, 'healthy', 0)
    await w.look()
    t.match(await w.alerts('endpoint_health'), [{ state: 'resolved', acknowledged_by: String }])
    await report.target(w, first, 'degraded', 2)
    await report.target(w, second, 'degraded', 2)
    await w.look()
    const open = (await w.alerts('endpoint_health')).filter((one: { state: string }) => one.state === 'firing')
    t.match(
      open.map((one: { severity: string }) => one.severity),
      ['critical', 'critical'],
      'it is grave when no target is left',
    )
  },
)

t.test('trunk_apply_failed: fires until a later revision is in force', async t => {
  const w = await alertWorld(t)
  const trunk_id = await addTrunk(w)
  await report.applied(w, trunk_id, 1, null)
  await w.look()
  t.same(await w.alerts('trunk_apply_failed'), [])
  await w.state.db.updateTable('trunk').set({ revision: 2 }).where('id', '=', trunk_id).execute()
  await report.applied(w, trunk_id, 2, 'the certificate cannot be read')
  await w.look()
  const [alert] = await w.alerts('trunk_apply_failed')
  t.match(alert, {
    state: 'firing',
    severity: 'critical',
    reason: /Revision 2 .* could not be applied; revision 1 runs/,
  })
  t.match(alert.evidence[0], { label: 'Error', text: 'the certificate cannot be read' })
  await w.state.db.updateTable('trunk').set({ revision: 3 }).where('id', '=', trunk_id).execute()
  await w.look()
  t.match(await w.alerts('trunk_apply_failed'), [{ state: 'firing' }], 'saved is not in force')
  await report.applied(w, trunk_id, 3, null)
  await w.look()
  t.match(await w.alerts('trunk_apply_failed'), [{ state: 'resolved' }])
})

t.test('alerts about a trunk end with its release, those about a target with its removal', async t => {
  const w = await alertWorld(t)
  const targets = [{ sip_uri: 'sip:a.example.com', transport: 'udp', priority: 10, weight: 100 }]
  const trunk_id = await addTrunk(w, { targets })
  await w.state.db.updateTable('trunk').set({ status: 'enabled' }).where('id', '=', trunk_id).execute()
  const { id: target_id } = await w.state.db.selectFrom('termination_target').select('id').executeTakeFirstOrThrow()
  await report.target(w, target_id, 'degraded', 2)
  await report.applied(w, trunk_id, 1, 'the certificate cannot be read')
  await w.look()
  t.match(await w.alerts('trunk_apply_failed'), [{ state: 'firing' }])
  t.match(await w.alerts('endpoint_health'), [{ state: 'firing' }])
  await w.state.db.updateTable('termination_target').set({ enabled: 0 }).where('id', '=', target_id).execute()
  await w.look()
  t.match(await w.alerts('endpoint_health'), [{ state: 'resolved' }])
  t.match(await w.alerts('trunk_apply_failed'), [{ state: 'firing' }])
  await w.state.db.updateTable('trunk').set({ status: 'released' }).where('id', '=', trunk_id).execute()
  await w.look()
  t.match(await w.alerts('trunk_apply_failed'), [{ state: 'resolved' }])
})
