import { auditEvents } from '../../../../control/reconcilers/audit-events.ts'
import { lostNodes } from '../../../../control/reconcilers/lost-nodes.ts'
import { trunkProgress } from '../../../../control/reconcilers/trunk-progress.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { digestHa1, unseal } from '../../../../core/runtime/secrets.ts'
import { saveEvidence } from '../../../../core/state/configuration/target-evidence.ts'
import { verifyChain } from '../../../../core/state/people/audit.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

const TRUNK = {
  name: 'Head office',
  direction: 'both',
  auth_mode: 'ip_allow_list',
  sources: ['198.51.100.10/32'],
  targets: [{ sip_uri: 'sip:198.51.100.10:5060', transport: 'udp', priority: 10, weight: 100 }],
  codecs: ['PCMA', 'PCMU'],
  media_security: 'rtp',
  require_tls: false,
  source_validation: 'relaxed',
}
const telling = auditEvents()
const { sources: _sources, targets: _targets, ...SETTINGS } = TRUNK

async function trunk(w: ControlPlane, changes: object = {}) {
  const { status, body, text } = await w.ask('POST', '/v1/trunks', {
    body: { ...TRUNK, ...changes },
    headers: { 'Idempotency-Key': freshKey() },
  })
  if (status !== 201) throw new Error(text)
  return { id: body.trunk.id as string, path: `/v1/trunks/${body.trunk.id}`, password: body.digest_password as string }
}

const write = (w: ControlPlane, method: string, path: string, revision: number, body?: object) =>
  w.ask(method, path, {
    ...(body ? { body } : {}),
    headers: { 'If-Match': `"${revision}"`, 'Idempotency-Key': freshKey() },
  })

/** Writes a signaling node that has applied `revision` of a trunk. */
async function applied(w: ControlPlane, resource_id: string, revision: number) {
  const now = iso(w.clock.now())
  const node = { id: 'n1', kind: 'signaling', pid: 1, started_at: now, heartbeat_at: now } as const
  await w.state.db
    .insertInto('node')
    .values(node)
    .onConflict(oc => oc.column('id').doUpdateSet(node))
    .execute()
  const report = { node_id: 'n1', resource_id, revision, state: 'applied', error: null, applied_at: now } as const
  await w.state.db
    .insertInto('apply_report')
    .values(report)
    .onConflict(oc => oc.columns(['node_id', 'resource_id']).doUpdateSet(report))
    .execute()
}

t.test('concurrent writes each get their own answer, and the audit trail has only those that succeeded', async t => {
  const w = await controlPlane(t)
  const trunks = await Promise.all(Array.from({ length: 12 }, () => trunk(w, { sources: [], targets: [] })))
  const save = (path: string, at: number) => {
    const body = { ...SETTINGS, name: `Name ${at}` }
    if (at % 4 === 0) return write(w, 'PATCH', path, 9, body)
    if (at % 4 === 1) return write(w, 'PATCH', path, 1, { ...body, subaccount_id: 'sub_unknown' })
    return at % 4 === 2 ? write(w, 'PATCH', path, 1, body) : write(w, 'POST', `${path}/suspend`, 1)
  }
  const answers = await Promise.all(trunks.map(({ path }, at) => save(path, at)))
  for (const [at, { status, headers, body }] of answers.entries()) {
    t.equal(status, [412, 422, 200, 200][at % 4], JSON.stringify(body))
    if (status === 200) t.match([headers.get('etag'), body.revision, body.id], ['"2"', 2, trunks[at]?.id])
    const now = (await w.ask('GET', trunks[at]?.path ?? '')).body
    const told = [now.name, now.status, now.revision]
    const kept = [TRUNK.name, 'enabled', 1]
    t.same(told, [kept, kept, [`Name ${at}`, 'enabled', 2], [TRUNK.name, 'disabled', 2]][at % 4])
  }
  const events = await w.state.db.selectFrom('audit_event').select(['action', 'organization_id']).execute()
  const count = (action: string) => events.filter(event => event.action === action).length
  t.same([count('trunk.created'), count('trunk.updated'), count('trunk.suspended')], [12, 3, 3])
  t.match(await verifyChain(w.state.db, events[0]?.organization_id ?? ''), { intact: true, events: 18 })
})

t.test('exactly one of fifty concurrent PATCHes with the same If-Match succeeds', async t => {
  const w = await controlPlane(t)
  const { path } = await trunk(w)
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, at) => write(w, 'PATCH', path, 1, { ...SETTINGS, name: `Name ${at}` })),
  )
  const won = answers.filter(answer => answer.status === 200)
  t.equal(won.length, 1)
  t.equal(answers.filter(answer => answer.status === 412).length, 49)
  for (const { body, headers, status } of answers)
    if (status === 412) {
      t.equal(headers.get('etag'), '"2"')
      t.match(body, { code: 'revision_mismatch', detail: /2/, changed_resources: [path.split('/').at(-1)] })
    }
  const read = await w.ask('GET', path)
  t.equal(read.body.name, won[0]?.body.name)
  t.equal(read.body.revision, 2)
})

t.test('every write below a trunk increments its revision', async t => {
  const w = await controlPlane(t)
  const { path } = await trunk(w)
  const source = await write(w, 'POST', `${path}/ip-credentials`, 1, { cidr: '192.0.2.0/24' })
  t.match(source.body, { cidr: '192.0.2.0/24', enabled: true, selector_precedence: 0 })
  const target = await write(w, 'POST', `${path}/termination-uris`, 2, { sip_uri: 'sip:192.0.2.1', transport: 'tcp' })
  t.match(target.body, { priority: 10, weight: 100, enabled: true })
  t.equal(target.headers.get('etag'), '"3"')
  t.equal((await write(w, 'DELETE', `${path}/ip-credentials/${source.body.id}`, 2)).status, 412)
  t.equal((await write(w, 'DELETE', `${path}/ip-credentials/${source.body.id}`, 3)).status, 204)
  const off = { sip_uri: 'sip:192.0.2.1', transport: 'tcp', enabled: false }
  t.equal((await write(w, 'PATCH', `${path}/termination-uris/${target.body.id}`, 4, off)).body.enabled, false)
  const twice = await write(w, 'POST', `${path}/termination-uris`, 5, { sip_uri: 'sip:192.0.2.1', transport: 'tcp' })
  t.equal(twice.status, 409)
  t.equal(twice.body.code, 'target_exists')
  const { body } = await w.ask('GET', path)
  t.equal(body.revision, 5)
  t.same(
    body.authentication.sources.map((s: { cidr: string }) => s.cidr),
    ['198.51.100.10/32'],
  )
})

t.test(
  'a TLS target is verified by chain and name unless its certificate is pinned or verification is switched off',
  async t => {
    const w = await controlPlane(t)
    const { path } = await trunk(w)
    const uri = { sip_uri: 'sip:pbx.example.test', transport: 'tls' }
    const made = await write(w, 'POST', `${path}/termination-uris`, 1, uri)
    t.match(made.body, { tls_verification: 'required', tls_fingerprint: null })
    const at = `${path}/termination-uris/${made.body.id}`
    const pin = `${'AB:'.repeat(31)}CD`
    for (const wrong of [
      { tls_verification: 'pinned' },
      { tls_verification: 'pinned', tls_fingerprint: 'z'.repeat(64) },
      { tls_verification: 'off', tls_fingerprint: pin },
      { tls_fingerprint: pin },
      { tls_verification: 'maybe' },
    ])
      t.equal((await write(w, 'PATCH', at, 2, { ...uri, ...wrong })).status, 422, JSON.stringify(wrong))
    const pinned = await write(w, 'PATCH', at, 2, { ...uri, tls_verification: 'pinned', tls_fingerprint: pin })
    t.match(pinned.body, { tls_verification: 'pinned', tls_fingerprint: `${'ab'.repeat(31)}cd` })
    const kept = await write(w, 'PATCH', at, 3, { ...uri, weight: 7 })
    t.match(kept.body, { tls_verification: 'pinned', tls_fingerprint: `${'ab'.repeat(31)}cd`, weight: 7 })
    const [route] = (await w.ask('GET', path)).body.routes.slice(-1)
    t.match(route, { tls_verification: 'pinned', tls_fingerprint: `${'ab'.repeat(31)}cd` })
    const off = await write(w, 'PATCH', at, 4, { ...uri, tls_verification: 'off' })
    t.match(off.body, { tls_verification: 'off', tls_fingerprint: null })
  },
)

t.test('a target’s password is sealed, never shown, and does not follow a change of its address', async t => {
  const w = await controlPlane(t)
  const { id, path } = await trunk(w, { targets: [] })
  const at = `${path}/termination-uris`
  const secret = 'correct horse battery staple'
  const uri = { sip_uri: 'sip:203.0.113.20:5060', transport: 'udp' }
  const digest = { digest_username: 'us', digest_password: secret }
  t.match(await write(w, 'POST', at, 1, { ...uri, digest_password: secret }), { status: 422 }, 'whose password?')
  t.match(await write(w, 'POST', at, 1, { ...uri, digest_username: 'us' }), { status: 422 }, 'which password?')
  const made = await write(w, 'POST', at, 1, { ...uri, ...digest, redirects: 'same_host' })
  t.match(made, { status: 201, body: { digest_username: 'us', redirects: 'same_host' } })
  const row = () => w.state.db.selectFrom('termination_target').selectAll().executeTakeFirstOrThrow()
  t.equal(unseal(w.settings.master_key, (await row()).digest_password_sealed ?? ''), secret)

  const one = `${at}/${made.body.id}`
  const kept = await write(w, 'PATCH', one, 2, { ...uri, weight: 7 })
  t.match(kept.body, { digest_username: 'us', redirects: 'same_host', weight: 7 })
  t.equal(unseal(w.settings.master_key, (await row()).digest_password_sealed ?? ''), secret)
  const elsewhere = { sip_uri: 'sip:203.0.113.66:5060', transport: 'udp' }
  t.match(await write(w, 'PATCH', one, 3, { ...elsewhere, digest_username: 'us' }), { status: 422 })
  const moved = await write(w, 'PATCH', one, 3, elsewhere)
  t.match(moved, { status: 200, body: { digest_username: null } })
  t.equal((await row()).digest_password_sealed, null, 'another host is not given the password’s digests')
  const trail = await w.state.db.selectFrom('audit_event').selectAll().execute()
  const shown = (await w.ask('GET', `/v1/trunks/${id}`)).text
  t.notMatch(JSON.stringify(trail) + made.text + kept.text + shown, new RegExp(secret))
})

t.test('suspend and resume change the status; suspending a suspended trunk changes nothing', async t => {
  const w = await controlPlane(t)
  const { path } = await trunk(w)
  const suspended = await write(w, 'POST', `${path}/suspend`, 1)
  t.match(suspended.body, { status: 'disabled', revision: 2, endpoint_evidence: [{ state: 'idle' }] })
  const again = await write(w, 'POST', `${path}/suspend`, 2)
  t.match(again.body, { status: 'disabled', revision: 2 })
  t.match((await write(w, 'POST', `${path}/resume`, 2)).body, { status: 'enabled', revision: 3 })
})

t.test('a digest password is rotated with an overlap, revoked at once, and never stored', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { id, path, password } = await trunk(w, { auth_mode: 'digest', sources: [] })
  const [first] = (await w.ask('GET', `${path}/digest-credentials`)).body.data
  const row = await w.state.db.selectFrom('digest_credential').selectAll().executeTakeFirstOrThrow()
  t.equal(row.ha1_md5, digestHa1('md5', first.username, first.realm, password))
  t.equal(row.ha1_sha256, digestHa1('sha256', first.username, first.realm, password))
  const rotated = await write(w, 'POST', `${path}/digest-credentials/${first.id}/rotate`, 1)
  t.equal(rotated.status, 201)
  t.match(rotated.body, {
    username: first.username,
    rotated_from_id: first.id,
    secret_unavailable: false,
    password: /^\w{24}$/,
    new_applied_at: null,
  })
  t.not(rotated.body.password, password)
  const ends = Date.parse(rotated.body.previous_retires_at) - w.clock.now()
  t.equal(ends, 24 * 3_600_000, 'the old password works for another day')
  const twice = await write(w, 'POST', `${path}/digest-credentials/${first.id}/rotate`, 2)
  t.equal(twice.body.code, 'state_conflict', 'a rotated credential cannot be rotated again')
  await applied(w, id, 2)
  await trunkProgress.run({ ...w })
  const data = (await w.ask('GET', `${path}/digest-credentials`)).body.data
  t.ok(
    data.find((c: { id: string }) => c.id === rotated.body.id).new_applied_at,
    'marked as applied once the nodes have it',
  )
  t.equal((await write(w, 'DELETE', `${path}/digest-credentials/${first.id}`, 2)).status, 204)
  t.equal((await write(w, 'DELETE', `${path}/digest-credentials/${first.id}`, 3)).status, 404)
  const identities = (await w.ask('GET', path)).body.authentication.digest_identities
  t.equal(identities.length, 1)
})

t.test('a trunk is released when its name is confirmed, nothing refers to it, and no node runs it', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { id, path } = await trunk(w)
  const wrong = await write(w, 'DELETE', path, 1, { confirm_name: 'head office' })
  t.equal(wrong.status, 422)
  t.equal(wrong.body.code, 'confirm_name_mismatch')
  const number = { route_kind: 'trunk', route_id: id } as const
  await w.state.db.updateTable('number').set(number).where('project_id', '=', w.demo.project_id).execute()
  const used = await write(w, 'DELETE', path, 1, { confirm_name: 'Head office' })
  t.equal(used.status, 409)
  t.match(used.body, { code: 'trunk_in_use', detail: /10 numbers/ })
  await w.state.db.updateTable('number').set({ route_kind: null, route_id: null }).execute()
  await applied(w, id, 1)
  t.equal((await write(w, 'DELETE', path, 1, { confirm_name: 'Head office' })).status, 204)
  t.match((await w.ask('GET', path)).body, { status: 'releasing', revision: 2 })
  t.equal((await write(w, 'POST', `${path}/suspend`, 2)).body.code, 'trunk_releasing')
  await trunkProgress.run({ ...w })
  t.equal((await w.ask('GET', path)).status, 200, 'a node has not applied the release yet')
  await applied(w, id, 2)
  await trunkProgress.run({ ...w })
  t.equal((await w.ask('GET', path)).status, 404)
  t.same((await w.ask('GET', '/v1/trunks')).body.data, [])
})

t.test('the effective revision is the lowest of the live nodes, and 0 without a live node', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { id, path } = await trunk(w)
  const apply = async () => (await w.ask('GET', path)).body.apply
  t.match(await apply(), { state: 'applying', desired_revision: 1, effective_revision: 0 })
  await applied(w, id, 1)
  t.match(await apply(), { state: 'applied', desired_revision: 1, effective_revision: 1, error: null })
  await write(w, 'POST', `${path}/suspend`, 1)
  t.match(await apply(), { state: 'applying', desired_revision: 2, effective_revision: 1 })
  await w.state.db.updateTable('apply_report').set({ revision: 2, state: 'failed', error: 'no TLS' }).execute()
  t.match(await apply(), { state: 'failed', effective_revision: 1, error: 'no TLS' })
  await w.state.db
    .updateTable('node')
    .set({ heartbeat_at: iso(w.clock.now() - 20_000) })
    .execute()
  t.match(await apply(), { state: 'applying', effective_revision: 0 })
})

t.test('calls of a lost node end with reason node_lost, and the node is deleted', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const at = iso(w.clock.now() - 20_000)
  await w.state.db
    .insertInto('node')
    .values({ id: 'gone', kind: 'signaling', pid: 1, started_at: at, heartbeat_at: at })
    .execute()
  const sid = `CA${'0'.repeat(32)}`
  await w.state.db
    .insertInto('call')
    .values({
      sid,
      project_id: w.demo.project_id,
      account_sid: w.demo.account_sid,
      parent_call_sid: null,
      origin: 'rest',
      direction: 'outbound-api',
      from_number: '+2342010000001',
      to_number: '+2342010000002',
      status: 'in-progress',
      trunk_id: null,
      carrier_id: null,
      number_id: null,
      application_id: null,
      sip_call_id: null,
      request: null,
      node_id: 'gone',
      queued_at: at,
      initiated_at: at,
      ringing_at: at,
      answered_at: at,
      ended_at: null,
      duration_seconds: null,
      sip_code: null,
      reason: null,
      ended_by: null,
      decision_trace: null,
      updated_at: at,
    })
    .execute()
  const lost = lostNodes()
  for (let looks = 0; looks < 4; looks++) {
    await lost.run({ ...w })
    clock.move(5000)
  }
  const cdr = await w.state.db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirstOrThrow()
  t.match(cdr, { status: 'completed', reason: 'node_lost' })
  t.same(await w.state.db.selectFrom('node').selectAll().execute(), [])
})

t.test('trunk.updated is sent for writes of targets, sources, credentials and the policy of a trunk', async t => {
  const w = await controlPlane(t)
  const hook = { url: 'https://app.example.com/hook', event_kinds: ['trunk.updated', 'trunk.created'] }
  await w.ask('POST', '/v1/webhook-endpoints', { body: hook, headers: { 'Idempotency-Key': freshKey() } })
  await telling.run(w)
  const { id, path } = await trunk(w)
  const target = { sip_uri: 'sip:198.51.100.11', transport: 'udp' }
  const target_id = (await write(w, 'POST', `${path}/termination-uris`, 1, target)).body.id
  await write(w, 'PATCH', `${path}/termination-uris/${target_id}`, 2, { ...target, weight: 7 })
  const source = (await write(w, 'POST', `${path}/ip-credentials`, 3, { cidr: '198.51.100.12/32' })).body.id
  await write(w, 'DELETE', `${path}/ip-credentials/${source}`, 4)
  await write(w, 'POST', `${path}/digest-credentials`, 5, { realm: 'sip.example.com' })
  const policy = { name: 'Office', recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }
  const made = await w.ask('POST', '/v1/outbound-policies', {
    body: policy,
    headers: { 'Idempotency-Key': freshKey() },
  })
  t.equal((await write(w, 'PUT', `${path}/outbound-policy`, 6, { policy_id: made.body.id })).status, 200)
  await telling.run(w)
  const rows = await w.state.db.selectFrom('webhook_delivery').selectAll().orderBy('position').execute()
  const told = rows.map(({ event_kind, payload }) => {
    const { data } = JSON.parse(payload)
    return `${event_kind} ${data.id === id ? 'of the trunk' : data.id} ${data.revision}`
  })
  t.same(told, [
    'trunk.created of the trunk 1',
    ...[2, 3, 4, 5, 6, 7].map(revision => `trunk.updated of the trunk ${revision}`),
  ])
  const share = { body: { name: 'Branch', status: 'enabled' }, headers: { 'Idempotency-Key': freshKey() } }
  t.equal((await w.ask('POST', `${path}/subtrunks`, share)).status, 201)
  await telling.run(w)
  const last = await w.state.db
    .selectFrom('webhook_delivery')
    .selectAll()
    .orderBy('position', 'desc')
    .executeTakeFirst()
  t.equal(last?.event_kind, 'trunk.updated', 'a subtrunk is a part of its trunk')
  t.match(JSON.parse(last?.payload ?? '{}').data, { id, part: { type: 'subtrunk', name: 'Branch' } })
})

t.test('what is said of the last OPTIONS of a target agrees with its state', async t => {
  const w = await controlPlane(t)
  const { path } = await trunk(w)
  const target_id = (await w.ask('GET', path)).body.routes[0].id
  const evidence = async (state: 'unknown' | 'healthy' | 'degraded', misses: number, last_code: number) => {
    const row = { target_id, node_id: 'n1', state, misses, last_code, address: null }
    await saveEvidence(w.state.db, row, w.clock.now())
    const [shown] = (await w.ask('GET', path)).body.endpoint_evidence
    return `${shown.state}, ${shown.last_result.code}: ${shown.detail}`
  }
  t.equal(await evidence('healthy', 0, 200), 'healthy, 200: The target answers OPTIONS.')
  t.equal(
    await evidence('healthy', 0, 503),
    'healthy, 503: The target answers OPTIONS.',
    'a 503 of its own is an answer',
  )
  t.match(await evidence('healthy', 1, 503), /^healthy, no_answer: .* left the last OPTIONS unanswered/)
  t.match(await evidence('unknown', 1, 408), /^unknown, no_answer: .* left its first OPTIONS unanswered/)
  t.match(await evidence('degraded', 2, 408), /^degraded, no_answer: .* missed two or more/)
})
