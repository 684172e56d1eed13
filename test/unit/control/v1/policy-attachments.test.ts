import { fraudWatch } from '../../../../control/alerts/evaluate.ts'
import { convergence, nextStatus } from '../../../../control/reconcilers/convergence.ts'
import { type ServiceType, voiceService } from '../../../../core/domain/admission/index.ts'
import { admitQueuedCall, writeCall } from '../../../../core/state/calls/running-calls.ts'
import { CONFIGURATION, configurationRevision } from '../../../../core/state/configuration/snapshot.ts'
import { saveEvidence } from '../../../../core/state/configuration/target-evidence.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey, openSandbox } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { importPriceBook } from '../../../support/rated.ts'

// Outbound policies and the services that they are attached to.

const POLICY = { recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }
const TRUNK = {
  ...{ name: 'Head office', direction: 'both', auth_mode: 'ip_allow_list', sources: [], targets: [], codecs: ['PCMA'] },
  ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
}
const DENIED = '+2348030004711'
const OTHER = '+447700900123'

/** Prices prefixes by the minute, and takes the project out of the sandbox. */
async function rated(w: ControlPlane, rates: readonly { prefix: string; rate_minor: number }[]): Promise<void> {
  const from = new Date(w.clock.now() - 60_000).toISOString()
  const book = {
    project_id: null,
    name: 'Prices',
    direction: 'outbound',
    currency: 'NGN',
    effective_from: from,
  } as const
  const per_minute = { rate_unit: 'minute', increment_initial_seconds: 60, increment_additional_seconds: 60 } as const
  await importPriceBook(
    w.state,
    { ...book, created_at: from },
    rates.map(({ prefix, rate_minor }) => ({
      ...per_minute,
      prefix,
      label: prefix,
      rate_micro: rate_minor * 1_000_000,
    })),
  )
  await w.state.db.updateTable('project').set({ sandbox: 0 }).execute()
  await w.state.db.updateTable('carrier').set({ sandbox: 0 }).execute()
}

/** Has a queued call admitted and answered, as a signaling node would. */
async function answer(w: ControlPlane, sid: string): Promise<void> {
  const row = await w.state.db.selectFrom('call').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()
  const now_ms = w.clock.now()
  const request = {
    part: 'outbound',
    way: 'create',
    service: voiceService(row.project_id, row.application_id),
    ...{ call_sid: sid, node_id: 'node_x', project_id: row.project_id, transport: null, offer: null, now_ms },
    ...{ called: row.to_number, caller: row.from_number },
  } as const
  await admitQueuedCall(w.state.db, { requests: [request], waits_for: null, now_ms })
  await writeCall(w.state.db, sid, [{ step: 'answered', at_ms: now_ms }])
}

const post = (w: ControlPlane, path: string, body: object): Promise<Answer> =>
  w.ask('POST', path, { body, headers: { 'Idempotency-Key': freshKey() } })

const makePolicy = async (w: ControlPlane, name: string, changes: object = {}): Promise<string> =>
  (await post(w, '/v1/outbound-policies', { name, ...POLICY, ...changes })).body.id

/** Makes a policy that denies Nigeria. */
async function denying(w: ControlPlane): Promise<string> {
  const id = await makePolicy(w, 'No Nigeria')
  const rules = [{ kind: 'country', op: 'deny', value: 'NG', label: null }]
  const headers = { 'If-Match': '"1"', 'Idempotency-Key': freshKey() }
  const path = `/v1/outbound-policies/${id}/destination-rules`
  const { status, text } = await w.ask('PATCH', path, { body: { rules }, headers })
  if (status !== 200) throw new Error(text)
  return id
}

/** Attaches a policy at a service's path, with the revision that the service has now. */
async function put(w: ControlPlane, path: string, body: object): Promise<Answer> {
  const { headers } = await w.ask('GET', path)
  return w.ask('PUT', `${path}/outbound-policy`, { body, headers: { 'If-Match': headers.get('etag') ?? '' } })
}

/** Has a live signaling node report the saved configuration, and runs the reconciler. */
async function converge(w: ControlPlane, behind = 0): Promise<void> {
  const at = new Date(w.clock.now()).toISOString()
  const node = { id: 'node_x', kind: 'signaling', pid: 1, started_at: at, heartbeat_at: at, draining_at: null } as const
  await w.state.db
    .insertInto('node')
    .values(node)
    .onConflict(conflict => conflict.column('id').doUpdateSet({ heartbeat_at: at }))
    .execute()
  const revision = (await configurationRevision(w.state.db)) - behind
  const report = { node_id: 'node_x', resource_id: CONFIGURATION, revision, state: 'applied', error: null } as const
  await w.state.db
    .insertInto('apply_report')
    .values({ ...report, applied_at: at })
    .onConflict(conflict => conflict.columns(['node_id', 'resource_id']).doUpdateSet({ revision }))
    .execute()
  await convergence.run(w)
}

/** A service of each type, with its path. */
async function services(
  w: ControlPlane,
): Promise<Readonly<Record<ServiceType, { readonly id: string; readonly path: string }>>> {
  const trunk = (await post(w, '/v1/trunks', TRUNK)).body.trunk.id as string
  const subtrunk = (await post(w, `/v1/trunks/${trunk}/subtrunks`, { name: 'Reseller', status: 'enabled' })).body.id
  const wanted = { name: 'Reception', voice_method: 'POST', voice_url: 'https://app.example.com/voice' }
  const application = (await post(w, '/v1/voice/applications', wanted)).body.id as string
  return {
    trunk: { id: trunk, path: `/v1/trunks/${trunk}` },
    subtrunk: { id: subtrunk, path: `/v1/trunks/${trunk}/subtrunks/${subtrunk}` },
    voice_application: { id: application, path: `/v1/voice/applications/${application}` },
    automation: { id: w.demo.project_id, path: '/v1/voice-account' },
  }
}

t.test('a project has one default policy from its creation; it can be changed, and not deleted', async t => {
  const w = await controlPlane(t)
  const { data } = (await w.ask('GET', '/v1/outbound-policies')).body
  t.equal(data.length, 1)
  const [policy] = data
  t.match(policy, { system_default: true, status: 'active', recording: { mode: 'off' } })
  for (const name of ['concurrency', 'cps', 'max_call_duration'])
    t.ok(policy.ceilings[name].configured > 0, `it has a ceiling on ${name}`)
  for (const name of ['daily_spend', 'max_destination_rate'])
    t.ok(policy.ceilings[name].configured_minor > 0, `it has a ceiling on ${name}`)
  const path = `/v1/outbound-policies/${policy.id}`
  const headers = { 'If-Match': `"${policy.revision}"`, 'Idempotency-Key': freshKey() }
  const saved = await w.ask('PATCH', path, { body: { name: 'Ours', ...POLICY, concurrency: 3 }, headers })
  t.match(saved, {
    status: 200,
    body: { name: 'Ours', system_default: true, ceilings: { concurrency: { configured: 3 } } },
  })
  const gone = await w.ask('DELETE', `${path}?detach=true`, { headers: { 'Idempotency-Key': freshKey() } })
  t.match(gone, { status: 409, body: { code: 'state_conflict' } })
  await t.rejects(
    w.state.db
      .updateTable('outbound_policy')
      .set({ system_default: 1 })
      .where('id', '=', await makePolicy(w, 'Second'))
      .execute(),
    'a project has one',
  )
})

t.test('a policy is attached to a service of each type, and its attachments follow what the nodes report', async t => {
  const w = await controlPlane(t)
  const of = await services(w)
  const policy_id = await makePolicy(w, 'Domestic')
  const attachments = async () => (await w.ask('GET', `/v1/outbound-policies/${policy_id}/attachments`)).body.data
  const { name: trunk_name } = (await w.ask('GET', of.trunk.path)).body
  for (const [type, { id, path }] of Object.entries(of)) {
    const attached = await put(w, path, { policy_id, note: `for ${type}`, outbound_enabled: false })
    t.match(attached, { status: 200, body: { outbound_policy: { id: policy_id, name: 'Domestic' } } }, type)
    t.match((await w.ask('GET', path)).body, { outbound_policy: { id: policy_id } }, type)
    const one = (await attachments()).find((row: { service_id: string }) => row.service_id === id)
    t.match(one, {
      ...{ service_type: type, apply_state: 'pending', applied_at: null },
      ...{ note: `for ${type}`, outbound_enabled: false },
      parent_name: type === 'subtrunk' ? trunk_name : null,
    })
    await converge(w, 2)
    t.equal((await attachments()).at(-1).apply_state, 'pending', 'the node has an earlier configuration')
    await converge(w)
    t.equal((await attachments()).at(-1).apply_state, 'applied')
    await put(w, path, { policy_id, outbound_enabled: true })
    t.match((await attachments()).at(-1), { note: `for ${type}`, outbound_enabled: true, apply_state: 'pending' })
  }
  t.match((await w.ask('GET', `/v1/outbound-policies/${policy_id}`)).body, {
    attached_services: 4,
    applied_services: 3,
  })
  await converge(w)
  const headers = { 'If-Match': '"1"', 'Idempotency-Key': freshKey() }
  await w.ask('PATCH', `/v1/outbound-policies/${policy_id}`, { body: { name: 'Domestic', ...POLICY }, headers })
  t.match(
    (await w.ask('GET', `/v1/outbound-policies/${policy_id}`)).body,
    { applied_services: 0 },
    'a change is applied again',
  )
  t.match(await put(w, of.trunk.path, { policy_id: null, note: 'x' }), { status: 422 })
  t.match(await put(w, of.trunk.path, { policy_id: null }), { status: 200, body: { outbound_policy: null } })
  const revisions = async () =>
    Promise.all(Object.values(of).map(async ({ path }) => (await w.ask('GET', path)).headers.get('etag')))
  const before = await revisions()
  const removed = await w.ask('DELETE', `/v1/outbound-policies/${policy_id}?detach=true`, {
    headers: { 'Idempotency-Key': freshKey() },
  })
  t.equal(removed.status, 204)
  const after = await revisions()
  t.same(
    after.map((etag, at) => etag !== before[at]),
    [false, true, true, true],
    'each detached service was saved',
  )
  for (const { path } of Object.values(of)) t.equal((await w.ask('GET', path)).body.outbound_policy, null)
})

t.test(
  'a program’s call to a denied destination is refused before it is queued, and the dry run tells why',
  async t => {
    const w = await controlPlane(t)
    await openSandbox(w)
    const of = await services(w)
    const [plain = '', routed = ''] = w.demo.numbers
    const number = { route_kind: 'voice_application', route_id: of.voice_application.id } as const
    await w.state.db.updateTable('number').set(number).where('e164', '=', routed).execute()
    const policy_id = await denying(w)
    for (const [type, From] of [
      ['automation', plain],
      ['voice_application', routed],
    ] as const) {
      const form = { To: DENIED, From, Twiml: '<Response/>' }
      const dryRun = async (called: string) =>
        (
          await post(w, '/v1/admission/dry-run', {
            ...{ service_type: type, service_id: of[type].id, called, caller: From },
          })
        ).body
      t.equal((await w.voice('POST', '/Calls.json', form)).status, 201, 'without a rule it is accepted')
      t.match(await dryRun(DENIED), { admitted: true })
      await w.state.db.deleteFrom('call').execute()
      await w.state.db.deleteFrom('call_command').execute()
      await put(w, of[type].path, { policy_id })
      const refused = await w.voice('POST', '/Calls.json', form)
      t.match(refused, { status: 403, body: { code: 21215, details: { reason: 'destination_denied' } } }, type)
      t.match(await dryRun(DENIED), { admitted: false, reason: 'destination_denied' }, type)
      t.equal((await w.voice('POST', '/Calls.json', { ...form, To: OTHER })).status, 201, 'others may be called')
      t.match(await dryRun(OTHER), { admitted: true })
      await put(w, of[type].path, { policy_id, outbound_enabled: false })
      const off = await w.voice('POST', '/Calls.json', { ...form, To: OTHER })
      t.match(off, { status: 403, body: { details: { reason: 'outbound_disabled' } } })
      t.match(await dryRun(OTHER), { admitted: false, reason: 'outbound_disabled' })
      const queued = await w.state.db.selectFrom('call').select('to_number').execute()
      t.same(queued, [{ to_number: OTHER }], 'only the allowed call is queued')
      await w.state.db.deleteFrom('call').execute()
      await put(w, of[type].path, { policy_id: null })
    }
    const general = (to: string) =>
      fetch(`${w.base_url}/api/v1/calls`, {
        method: 'POST',
        headers: {
          Authorization: `Basic ${Buffer.from(`${w.demo.account_sid}:${w.demo.auth_token}`).toString('base64')}`,
          'Content-Type': 'application/json',
        },
        body: JSON.stringify({ to, message: 'Hello.' }),
      })
    await put(w, of.automation.path, { policy_id })
    t.equal((await general(DENIED)).status, 403, 'the general API')
    t.equal((await general(OTHER)).status, 201)
    for (const [service_type, service_id] of Object.entries({
      trunk: 'trk_x',
      subtrunk: 'x',
      voice_application: 'x',
    })) {
      const unknown = { service_type, service_id, called: DENIED, caller: plain }
      t.match(await post(w, '/v1/admission/dry-run', unknown), { status: 422 }, `no ${service_type}`)
    }
  },
)

t.test('the dry run of a trunk whose only target is the peer itself says no route, as its calls get', async t => {
  const w = await controlPlane(t)
  const target = { sip_uri: 'sip:198.51.100.7:5060', transport: 'udp', priority: 1, weight: 1 }
  const body = { ...TRUNK, sources: ['198.51.100.0/24'], targets: [target] }
  const { id } = (await post(w, '/v1/trunks', body)).body.trunk
  const [caller] = w.demo.numbers
  const ask = { service_type: 'trunk', service_id: id, called: OTHER, caller }
  const dryRun = async () => (await post(w, '/v1/admission/dry-run', ask)).body
  t.match(await dryRun(), { admitted: false, reason: 'no_route' })
  const { headers } = await w.ask('GET', `/v1/trunks/${id}`)
  const gateway = { sip_uri: 'sip:gateway.example.com', transport: 'udp' }
  await w.ask('POST', `/v1/trunks/${id}/termination-uris`, {
    body: gateway,
    headers: { 'If-Match': headers.get('etag') ?? '', 'Idempotency-Key': freshKey() },
  })
  t.match(await dryRun(), { admitted: true }, 'a name is another host until it is seen at the peer')
  const [, named] = (await w.ask('GET', `/v1/trunks/${id}`)).body.routes
  const seen = { target_id: named.id, node_id: 'n1', state: 'healthy', misses: 0, last_code: 200 } as const
  await saveEvidence(w.state.db, { ...seen, address: '198.51.100.9' }, w.clock.now())
  t.match(await dryRun(), { admitted: false, reason: 'no_route' }, 'it answered from the sources of the trunk')
})

t.test('a subaccount is told which revision of its policies runs', async t => {
  const w = await controlPlane(t)
  const { id: subaccount_id } = (
    await post(w, '/v1/subaccounts', { name: 'North', configuration: { currency: 'NGN' } })
  ).body
  const policy_id = await makePolicy(w, 'Office')
  await post(w, '/v1/trunks', { ...TRUNK, subaccount_id, outbound_policy_id: policy_id })
  const running = async () => {
    const [policy] = (await w.ask('GET', `/v1/subaccounts/${subaccount_id}`)).body.policy_ceilings
    return `${policy.policy_revision}, runs ${policy.runtime_revision}`
  }
  t.equal(await running(), '1, runs 0', 'no node has it')
  await converge(w)
  t.equal(await running(), '1, runs 1')
  for (const revision of [1, 2]) {
    const headers = { 'If-Match': `"${revision}"`, 'Idempotency-Key': freshKey() }
    await w.ask('PATCH', `/v1/outbound-policies/${policy_id}`, { body: { name: 'Office', ...POLICY, cps: 3 }, headers })
  }
  t.equal(await running(), '3, runs 1', 'two changes that no node has')
  await converge(w)
  t.equal(await running(), '3, runs 3')
})

t.test('delegations say how far the nodes have come', async t => {
  const w = await controlPlane(t)
  const { subtrunk, trunk } = await services(w)
  const [start = ''] = w.demo.numbers
  const block_id = (await post(w, '/v1/number-blocks', { start, end: start })).body.id
  const list = async () => (await w.ask('GET', `${subtrunk.path}/delegations`)).body.data
  const state = async () => (await list())[0]?.status ?? null
  const headers = () => ({ 'Idempotency-Key': freshKey(), 'If-Match': '"1"' })
  const made = await w.ask('POST', `${subtrunk.path}/delegations`, { body: { block_id }, headers: headers() })
  t.match(made, { status: 201, body: { status: 'pending' } })
  await convergence.run(w)
  t.equal(await state(), 'pending', 'no node runs')
  await converge(w)
  t.equal(await state(), 'applied')
  const gone = await w.ask('DELETE', `${subtrunk.path}/delegations/${made.body.id}`, { headers: { 'If-Match': '"2"' } })
  t.equal(gone.status, 204)
  t.equal(await state(), 'detaching')
  await converge(w, 2)
  t.equal(await state(), 'detaching', 'a node still has the delegation')
  await converge(w)
  t.same(await list(), [])
  const { route_id } = await w.state.db
    .selectFrom('number')
    .select('route_id')
    .where('e164', '=', start)
    .executeTakeFirstOrThrow()
  t.equal(route_id, trunk.id, 'its numbers ring the trunk again')
  const nodes = { nodes: 2, all: 4, some: 5 }
  t.equal(nextStatus({ status: 'pending', revision: 5 }, nodes, false), 'applying', 'one of two nodes has it')
  t.equal(nextStatus({ status: 'applying', revision: 4 }, nodes, true), 'failed', 'a node could not apply the trunk')
  t.equal(nextStatus({ status: 'failed', revision: 4 }, nodes, false), 'applied', 'the trunk was mended')
})

t.test(
  'calls of a program to a dear destination never called before raise alerts and are contained, as on a trunk',
  async t => {
    const w = await controlPlane(t)
    await openSandbox(w)
    await rated(w, [
      { prefix: '234', rate_minor: 200 },
      { prefix: '88213', rate_minor: 500_000 },
    ])
    const watch = fraudWatch()
    const [From = ''] = w.demo.numbers
    const create = (To: string) => w.voice('POST', '/Calls.json', { To, From, Twiml: '<Response/>' })
    await w.state.db.updateTable('project').set({ open_risks: '["satellite"]' }).execute()
    const sids: string[] = []
    for (let count = 0; count < 6; count++) {
      const { status, body } = await create(`+88213555000${count}`)
      t.equal(status, 201)
      await answer(w, body.sid)
      sids.push(body.sid)
    }
    t.ok(watch.period_ms <= 1000, 'a look begins every second: its prefix is closed within five')
    await watch.run(w)
    const { alerts, containments } = (await w.ask('GET', '/v1/alerts?range=24h')).body
    const fired = alerts.map(({ kind, subject }: { kind: string; subject: { type: string; id: string } }) =>
      [kind, subject.type, subject.id].join(' '),
    )
    t.same(fired.sort(), [
      `first_seen_high_cost_destination account ${w.demo.project_id}`,
      `spend_velocity account ${w.demo.project_id}`,
    ])
    t.match(containments, [{ trunk_id: null, prefix: /^\+88213/ }])
    t.match(await create('+882135550009'), {
      status: 403,
      body: { code: 21216, details: { reason: 'DESTINATION_CONTAINED' } },
    })
    t.equal((await create('+2348030004711')).status, 201, 'other destinations stay open')
    const hung_up = await w.state.db
      .selectFrom('call_command')
      .select('call_sid')
      .where('kind', '=', 'hangup')
      .execute()
    t.same(hung_up.map(({ call_sid }) => call_sid).sort(), sids.sort(), 'its calls in progress end')
  },
)
