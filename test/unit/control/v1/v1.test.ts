import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { createMetrics, serveMetrics } from '../../../../core/runtime/metrics.ts'
import { digestProofs } from '../../../../signaling/trunks/digest-proofs.ts'
import { addCarrier } from '../../../support/carriers.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'
import { until } from '../../../support/wait.ts'

const TRUNK = {
  name: 'Head office',
  direction: 'both',
  auth_mode: 'ip_allow_list',
  sources: ['203.0.113.10/32'],
  targets: [{ sip_uri: 'sip:203.0.113.10:5060', transport: 'udp', priority: 10, weight: 100 }],
  codecs: ['PCMA', 'PCMU'],
  media_security: 'rtp',
  require_tls: false,
  source_validation: 'relaxed',
}

const create = (w: ControlPlane, body: object, key = freshKey()) =>
  w.ask('POST', '/v1/trunks', { body, headers: { 'Idempotency-Key': key } })

t.test('the project list shows the projects of the organization', async t => {
  const w = await controlPlane(t)
  const { status, body, headers } = await w.ask('GET', '/v1/projects')
  t.equal(status, 200)
  t.match(headers.get('x-request-id'), /^req_[0-9a-f]{32}$/)
  t.match(body, { data: [{ id: w.demo.project_id, status: 'active', currency: 'NGN', pending_payer: null }] })
})

t.test('every invalid credential gets the same 401', async t => {
  const w = await controlPlane(t)
  const now = Date.now()
  const past = new Date(now - 1000).toISOString()
  const good = w.key
  const bad: Record<string, string | null> = {
    missing: null,
    empty: '',
    'two spaces': ` ${good}`,
    'a voice auth token': w.demo.auth_token,
    'an unknown key': 'sk_live_AAAAAAAAAAAA_00000000000000000000000000000000',
    'a wrong secret': good.replace(/.$/, last => (last === '0' ? '1' : '0')),
    'an upper-case secret': good.replace(/[0-9a-f]{32}$/, secret => secret.toUpperCase()),
    expired: await w.newKey({ expires_at: past }),
    'rotated out': await w.newKey({ retires_at: past }),
    revoked: await w.newKey({ revoked_at: past }),
  }
  for (const [name, key] of Object.entries(bad)) {
    const { status, body, headers } = await w.ask('GET', '/v1/projects', { key })
    t.equal(status, 401, name)
    t.equal(headers.get('content-type'), 'application/problem+json', name)
    t.match(
      body,
      {
        code: 'unauthenticated',
        title: 'Unauthorized',
        status: 401,
        detail: 'A valid bearer credential is required.',
        type: 'http://strowger.test/docs/errors/unauthenticated',
        request_id: headers.get('x-request-id') ?? 'none',
      },
      name,
    )
  }
  t.equal((await w.ask('GET', '/v1/projects', { key: null, headers: { Authorization: `bEARER ${good}` } })).status, 200)
  const later = await w.newKey({ retires_at: new Date(now + 60_000).toISOString() })
  t.equal((await w.ask('GET', '/v1/projects', { key: later })).status, 200, 'a key works until its overlap ends')
})

t.test('role and scopes limit a key, and the refusal names the missing scope', async t => {
  const w = await controlPlane(t)
  const narrow = await w.newKey({ scopes: JSON.stringify(['billing:read']) })
  const scope = await w.ask('GET', '/v1/trunks', { key: narrow })
  t.equal(scope.status, 403)
  t.match(scope.body, { code: 'scope_required', reason: 'service_configuration:read' })
  const viewer = await w.newKey({ role: 'org:viewer' })
  t.equal((await w.ask('GET', '/v1/trunks', { key: viewer })).status, 200)
  const role = await w.ask('POST', '/v1/trunks', { key: viewer, body: TRUNK, headers: { 'Idempotency-Key': 'k' } })
  t.equal(role.status, 403)
  t.equal(role.body.code, 'role_forbidden')
})

t.test('a request gets its project, or its error, in each of the five documented cases', async t => {
  const w = await controlPlane(t)
  const headers = (id: string) => ({ headers: { 'X-Project-ID': id } })
  t.equal((await w.ask('GET', '/v1/trunks')).status, 200, 'one active project and no header')
  t.equal((await w.ask('GET', '/v1/trunks', headers(w.demo.project_id))).status, 200, 'the header names the project')
  const invalid = await w.ask('GET', '/v1/trunks', headers('prj_X'))
  t.equal(invalid.status, 400)
  t.equal(invalid.body.code, 'project_invalid')
  const foreign = await w.ask('GET', '/v1/trunks', headers(newId.project()))
  t.equal(foreign.status, 404)
  t.equal(foreign.body.code, 'project_not_found')
  const first = await w.state.db
    .selectFrom('project')
    .selectAll()
    .where('id', '=', w.demo.project_id)
    .executeTakeFirstOrThrow()
  const second = { ...first, id: newId.project(), name: 'Second', created_at: new Date().toISOString() }
  await w.state.db.insertInto('project').values(second).execute()
  const several = await w.ask('GET', '/v1/trunks')
  t.equal(several.status, 400)
  t.equal(several.body.code, 'project_context_required')
  t.same(several.body.available_projects, [
    { id: first.id, name: first.name },
    { id: second.id, name: 'Second' },
  ])
  t.equal((await w.ask('GET', '/v1/trunks', headers(w.demo.project_id))).status, 200)
})

t.test('a trunk is created, listed and read', async t => {
  const w = await controlPlane(t)
  const { status, body, headers } = await create(w, TRUNK)
  t.equal(status, 201)
  t.equal(headers.get('etag'), '"1"')
  const { trunk } = body
  t.equal(headers.get('location'), `/v1/trunks/${trunk.id}`)
  t.equal(body.digest_password, null)
  t.match(trunk, {
    id: /^trk_/,
    project_id: w.demo.project_id,
    name: 'Head office',
    status: 'enabled',
    revision: 1,
    signaling_fqdn: `${trunk.id.slice(4)}.sip.voice.test`,
    endpoints: { count: 1, state: 'idle', silent: 0 },
    authentication: { mode: 'ip_allow_list', sources: [{ cidr: '203.0.113.10/32', enabled: true }] },
    media: { codecs: ['PCMA', 'PCMU'], security: 'rtp' },
    endpoint_evidence: [{ state: 'unknown', last_result: null }],
    routes: [{ sip_uri: 'sip:203.0.113.10:5060', transport: 'udp', priority: 10, weight: 100, enabled: true }],
    apply: { state: 'applying', desired_revision: 1, effective_revision: 0 },
  })
  const read = await w.ask('GET', `/v1/trunks/${trunk.id}`)
  t.equal(read.headers.get('etag'), '"1"')
  const { as_of: _a, ...shown } = read.body
  const { as_of: _b, ...made } = trunk
  t.same(shown, made)
  const { data } = (await w.ask('GET', '/v1/trunks')).body
  t.equal(data.length, 1)
  t.equal(data[0].id, trunk.id)
  const { revision } = await w.state.db.selectFrom('configuration').selectAll().executeTakeFirstOrThrow()
  t.equal(revision, 3, 'the configuration revision tells signaling nodes to apply a change')
})

t.test("a digest trunk's password is shown once and never stored", async t => {
  const w = await controlPlane(t)
  const key = freshKey()
  const digest = { ...TRUNK, auth_mode: 'digest', sources: [] }
  const { body } = await create(w, digest, key)
  t.match(body.digest_password, /^[A-Za-z0-9]{24}$/)
  t.match(body.trunk.authentication.digest_identities, [{ enabled: true, realm: 'voice.test' }])
  const replay = await create(w, digest, key)
  t.equal(replay.status, 201)
  t.equal(replay.headers.get('idempotent-replayed'), 'true')
  t.equal(replay.body.digest_password, null)
  t.same(replay.body.trunk, body.trunk)
  t.equal((await w.ask('GET', '/v1/trunks')).body.data.length, 1)
  const tables = ['digest_credential', 'idempotency', 'audit_event', 'trunk'] as const
  for (const table of tables) {
    const rows = await w.state.db.selectFrom(table).selectAll().execute()
    t.notOk(JSON.stringify(rows).includes(body.digest_password), `${table} does not contain the password`)
  }
})

t.test('fifty concurrent creates with one Idempotency-Key make one trunk, and a different body is refused', async t => {
  const w = await controlPlane(t)
  const key = freshKey()
  const answers = await Promise.all(Array.from({ length: 50 }, () => create(w, TRUNK, key)))
  t.same(new Set(answers.map(answer => answer.status)), new Set([201]))
  t.equal(new Set(answers.map(answer => answer.body.trunk.id)).size, 1)
  t.equal(answers.filter(answer => answer.headers.get('idempotent-replayed') === null).length, 1)
  t.equal((await w.ask('GET', '/v1/trunks')).body.data.length, 1)
  const reused = await create(w, { ...TRUNK, name: 'Other' }, key)
  t.equal(reused.status, 422)
  t.equal(reused.body.code, 'idempotency_key_reused')
  const none = await w.ask('POST', '/v1/trunks', { body: TRUNK })
  t.equal(none.status, 400)
  t.equal(none.body.code, 'idempotency_key_required')
  t.equal((await create(w, TRUNK, ' ')).status, 400)
  t.equal((await create(w, TRUNK, 'x'.repeat(129))).status, 400)
  const refused = await create(w, { ...TRUNK, sources: ['203.0.113.11/24'] }, 'once')
  t.equal(refused.status, 422)
  t.equal(
    (await create(w, { ...TRUNK, sources: ['203.0.113.12'] }, 'once')).status,
    201,
    'a refusal does not consume the key',
  )
})

t.test(
  'an Idempotency-Key replays for other API keys of the project, but not for a key restricted to a subaccount',
  async t => {
    const w = await controlPlane(t)
    const idempotency = freshKey()
    const ask = (key: string, body: object) =>
      w.ask('POST', '/v1/voice/applications', { key, body, headers: { 'Idempotency-Key': idempotency } })
    const application = { name: 'IVR', voice_method: 'POST', voice_url: 'https://app.example.com/voice' }
    const first = await ask(w.key, application)
    t.equal(first.status, 201)
    const again = await ask(await w.newKey(), application)
    t.equal(again.body.id, first.body.id)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal((await ask(await w.newKey(), { ...application, name: 'Other' })).body.code, 'idempotency_key_reused')
    const choosing = (engines: object) =>
      w.ask('POST', '/v1/voice/applications', {
        ...{ key: w.key, body: { ...application, ...engines }, headers: { 'Idempotency-Key': freshKey() } },
      })
    t.match((await choosing({ stt: 'pocketsphinx', tts: 'espeak-ng' })).body, { stt: 'pocketsphinx', tts: 'espeak-ng' })
    t.match(await choosing({ tts: 'elevenlabs' }), {
      status: 422,
      text: /is not ready in this installation, which has espeak-ng/,
    })
    const trunk = (key: string) =>
      w.ask('POST', '/v1/trunks', { key, body: TRUNK, headers: { 'Idempotency-Key': 'one' } })
    const whole = await trunk(w.key)
    const confined = await trunk(await w.newKey({ subaccount_id: 'sub_x' }))
    t.not(confined.headers.get('idempotent-replayed'), 'true', 'a restricted key does not get the answers of others')
    t.notMatch(confined.text, whole.body.trunk.id)
  },
)

t.test('an invalid body is refused with a pointer to the field, and nothing is stored', async t => {
  const w = await controlPlane(t)
  const cases: [string, object, string][] = [
    ['unknown field', { ...TRUNK, colour: 'red' }, '/colour'],
    ['missing field', { ...TRUNK, name: undefined }, '/name'],
    ['null', { ...TRUNK, direction: null }, '/direction'],
    ['wrong type', { ...TRUNK, require_tls: 'yes' }, '/require_tls'],
    ['unknown value', { ...TRUNK, direction: 'sideways' }, '/direction'],
    ['name too long', { ...TRUNK, name: 'x'.repeat(121) }, '/name'],
    ['blank name', { ...TRUNK, name: '   ' }, '/name'],
    ['line break in a name', { ...TRUNK, name: 'a\r\nb' }, '/name'],
    ['a right-to-left override in a name', { ...TRUNK, name: 'Head \u202eeciffo' }, '/name'],
    ['an isolate in a name', { ...TRUNK, name: '\u2066Head' }, '/name'],
    ['a lone surrogate in a name', { ...TRUNK, name: 'Head \ud83d' }, '/name'],
    ['codec twice', { ...TRUNK, codecs: ['PCMA', 'PCMA'] }, '/codecs'],
    ['no codec', { ...TRUNK, codecs: [] }, '/codecs'],
    ['host bits', { ...TRUNK, sources: ['10.0.0.1/8'] }, '/sources/0'],
    ['everything', { ...TRUNK, sources: ['0.0.0.0/0'] }, '/sources/0'],
    ['not an address', { ...TRUNK, sources: ['example.com'] }, '/sources/0'],
    ['octal address', { ...TRUNK, sources: ['010.0.0.0/24'] }, '/sources/0'],
    ['mapped address', { ...TRUNK, sources: ['::ffff:10.0.0.0/104'] }, '/sources/0'],
    ['source twice', { ...TRUNK, sources: ['192.0.2.1', '192.0.2.1/32'] }, '/sources/1'],
    ['SIP header field', { ...TRUNK, targets: [target('sip:h.example?Subject=x')] }, '/targets/0/sip_uri'],
    ['SIP password', { ...TRUNK, targets: [target('sip:u:p@h.example')] }, '/targets/0/sip_uri'],
    ['CRLF', { ...TRUNK, targets: [target('sip:h.example\r\nX: y')] }, '/targets/0/sip_uri'],
    ['escaped CRLF', { ...TRUNK, targets: [target('sip:u%0d%0a@h.example')] }, '/targets/0/sip_uri'],
    ['port', { ...TRUNK, targets: [target('sip:h.example:70000')] }, '/targets/0/sip_uri'],
    ['tel', { ...TRUNK, targets: [target('tel:+2348030000001')] }, '/targets/0/sip_uri'],
    ['sips by udp', { ...TRUNK, targets: [target('sips:h.example')] }, '/targets/0/sip_uri'],
    ['foreign policy', { ...TRUNK, outbound_policy_id: 'pol_x' }, '/outbound_policy_id'],
    ['foreign subaccount', { ...TRUNK, subaccount_id: 'sub_x' }, '/subaccount_id'],
    [
      'beyond int32',
      { ...TRUNK, limits: { concurrency: 2 ** 53, cps: 1, max_call_duration_seconds: 1 } },
      '/limits/concurrency',
    ],
    ['incomplete limits', { ...TRUNK, limits: { concurrency: 1 } }, '/limits/cps'],
  ]
  for (const [name, body, pointer] of cases) {
    const answer = await create(w, body)
    t.equal(answer.status, 422, name)
    t.equal(answer.body.code, 'validation_failed', name)
    t.ok(
      answer.body.errors.some((error: { pointer: string }) => error.pointer === pointer),
      `${name}: ${JSON.stringify(answer.body.errors)} has ${pointer}`,
    )
  }
  const proto = await w.ask('POST', '/v1/trunks', {
    raw: JSON.stringify(TRUNK).replace('{', '{"__proto__":{"admin":true},'),
    headers: { 'Idempotency-Key': freshKey() },
  })
  t.equal(proto.status, 422, 'the key __proto__ is an unknown field')
  t.equal((await w.ask('GET', '/v1/trunks')).body.data.length, 0)
  t.equal((await w.state.db.selectFrom('trunk_source').selectAll().execute()).length, 0)

  function target(sip_uri: string) {
    return { sip_uri, transport: 'udp', priority: 0, weight: 0 }
  }
})

t.test('a source that would make two trunks ambiguous is refused', async t => {
  const w = await controlPlane(t)
  t.equal((await create(w, TRUNK)).status, 201)
  const twin = await create(w, { ...TRUNK, name: 'Twin', sources: ['203.0.113.10'] })
  t.equal(twin.status, 409)
  t.equal(twin.body.code, 'source_conflict')
  t.match(twin.body.detail, 'Head office')
  const apart = await create(w, { ...TRUNK, name: 'Twin', sources: ['203.0.113.20'] })
  const added = await w.ask('POST', `/v1/trunks/${apart.body.trunk.id}/ip-credentials`, {
    body: { cidr: '203.0.113.10', selector_precedence: 1 },
    headers: { 'If-Match': apart.headers.get('etag') ?? '', 'Idempotency-Key': freshKey() },
  })
  t.equal(added.status, 201, 'docs/errors.md advises another selector_precedence as an IP credential: it is taken')
  const inner = await create(w, { ...TRUNK, name: 'Wider', sources: ['203.0.113.0/24', '10.0.0.0/8'] })
  t.equal(inner.status, 201, 'a longer prefix takes precedence')
  t.match(inner.headers.get('warning'), '10.0.0.0/8', 'a private range is allowed with a warning')
  t.same(
    standings(inner),
    { '203.0.113.0/24': 'full', '10.0.0.0/8': 'pending_approval' },
    'a wide range waits for an operator',
  )
})

t.test('a trunk cannot take the addresses of a carrier or of another tenant', async t => {
  const w = await controlPlane(t)
  const carrier = { name: 'Carrier', codecs: ['PCMA'], sources: ['198.51.100.9/32', '203.0.113.128/25'] }
  await addCarrier(w.state, { ...carrier, targets: [], routes: [] }, iso(Date.now()))
  const mine = await create(w, TRUNK)
  for (const cidr of ['198.51.100.9/32', '198.51.100.0/24', '203.0.113.200/32', '128.0.0.0/1']) {
    const refused = await create(w, { ...TRUNK, auth_mode: 'digest', sources: ['192.0.2.1', cidr] })
    t.equal(refused.status, 409, cidr)
    t.equal(refused.body.code, 'source_of_carrier', cidr)
  }
  const path = `/v1/trunks/${mine.body.trunk.id}`
  const headers = { 'If-Match': '"1"', 'Idempotency-Key': freshKey() }
  const added = await w.ask('POST', `${path}/ip-credentials`, { body: { cidr: '198.51.100.9/32' }, headers })
  t.equal(added.body.code, 'source_of_carrier')
  const whole = ['1.0.0.0/8', '2.0.0.0/7', '4.0.0.0/6', '8.0.0.0/5', '16.0.0.0/4', '32.0.0.0/3', '64.0.0.0/2']
  const wide = await create(w, { ...TRUNK, name: 'Wide', sources: whole })
  t.same(standings(wide), Object.fromEntries(whole.map(cidr => [cidr, 'pending_approval'])))
  const made = await w.ask('POST', '/v1/subaccounts', {
    body: { name: 'Branch', configuration: { currency: 'NGN' } },
    headers: { 'Idempotency-Key': freshKey() },
  })
  const subaccount_id = made.body.id
  const key = await w.newKey({ subaccount_id })
  const body = { ...TRUNK, name: 'Thief', subaccount_id, sources: ['203.0.113.10', '192.0.2.7'] }
  const thief = await w.ask('POST', '/v1/trunks', { key, body, headers: { 'Idempotency-Key': freshKey() } })
  t.same(
    standings(thief),
    { '203.0.113.10/32': 'name_only', '192.0.2.7/32': 'full' },
    'a subaccount of the same project counts as another tenant',
  )
})

t.test('a source from which another tenant proved a password is name_only for 90 days', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const mine = await create(w, { ...TRUNK, auth_mode: 'digest', sources: [] })
  const proved = digestProofs(w)
  for (const address of ['192.0.2.77', '192.0.2.79', '192.0.2.77']) proved(mine.body.trunk.id, address)
  const noted = () => w.state.db.selectFrom('digest_proof').selectAll().execute()
  await until('both proofs are stored', async () => (await noted()).length === 2)
  const claim = (sources: readonly string[]) =>
    rival.ask('POST', '/v1/trunks', {
      body: { ...TRUNK, name: sources.join(), sources },
      headers: { 'Idempotency-Key': freshKey() },
    })
  t.same(standings(await claim(['192.0.2.77', '192.0.2.78'])), {
    '192.0.2.77/32': 'name_only',
    '192.0.2.78/32': 'full',
  })
  clock.move(91 * 86_400_000)
  t.same(standings(await claim(['192.0.2.79'])), { '192.0.2.79/32': 'full' }, 'an old proof does not count')
})

type Made = { readonly body: { trunk: { authentication: { sources: { cidr: string; standing: string }[] } } } }

const standings = ({ body }: Made) =>
  Object.fromEntries(body.trunk.authentication.sources.map(({ cidr, standing }) => [cidr, standing]))

t.test('malformed bodies, unknown paths and unsupported methods get their documented errors', async t => {
  const w = await controlPlane(t)
  const post = (raw: string | Buffer, headers: Record<string, string> = {}) =>
    w.ask('POST', '/v1/trunks', { raw, headers: { 'Idempotency-Key': freshKey(), ...headers } })
  const expect = async (answer: Promise<{ status: number; body: { code: string } }>, status: number, code: string) => {
    const { status: got, body } = await answer
    t.equal(got, status, code)
    t.equal(body.code, code)
  }
  await expect(post('{'), 400, 'body_malformed')
  await expect(post('[]'), 400, 'body_malformed')
  await expect(post('"x"'), 400, 'body_malformed')
  await expect(post(Buffer.from([0x7b, 0xff, 0x7d])), 400, 'body_malformed')
  await expect(w.ask('POST', '/v1/trunks', { headers: { 'Idempotency-Key': 'a' } }), 400, 'body_malformed')
  await expect(post('name=x', { 'Content-Type': 'application/x-www-form-urlencoded' }), 415, 'unsupported_media_type')
  await expect(post('{}', { 'Content-Encoding': 'gzip' }), 415, 'unsupported_media_type')
  await expect(post(`{"name":"${'x'.repeat(256 * 1024)}"}`), 413, 'body_too_large')
  await expect(w.ask('GET', '/v1/nothing'), 404, 'not_found')
  await expect(w.ask('GET', '/elsewhere'), 404, 'not_found')
  await expect(w.ask('GET', `/v1/trunks/${newId.trunk()}`), 404, 'not_found')
  await expect(w.ask('GET', '/v1/trunks?window=1h'), 422, 'validation_failed')
  const put = await w.ask('PUT', '/v1/trunks')
  t.equal(put.status, 405)
  t.equal(put.headers.get('allow'), 'GET, POST')
  t.equal(put.body.code, 'method_not_allowed')
})

t.test('the pages of a list have a stable order', async t => {
  const w = await controlPlane(t)
  for (let at = 0; at < 5; at += 1)
    t.equal((await create(w, { ...TRUNK, name: at < 3 ? 'same' : `t${at}`, sources: [] })).status, 201)
  const seen: string[] = []
  let cursor = ''
  do {
    const { status, body } = await w.ask('GET', `/v1/trunks?limit=2${cursor}`)
    t.equal(status, 200)
    seen.push(...body.data.map((trunk: { id: string }) => trunk.id))
    cursor = body.next_cursor ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  t.equal(new Set(seen).size, 5)
  const all = (await w.ask('GET', '/v1/trunks')).body.data.map((trunk: { id: string }) => trunk.id)
  t.same(seen, all)
  t.equal((await w.ask('GET', '/v1/trunks?cursor=%7B')).status, 422)
})

t.test("a key cannot see another tenant's trunk, not even by claiming its source", async t => {
  const w = await controlPlane(t)
  const { body } = await create(w, TRUNK)
  const now = new Date().toISOString()
  const first = await w.state.db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const organization_id = newId.organization()
  const project = { ...first, id: newId.project(), organization_id, name: 'Foreign' }
  await w.state.db
    .insertInto('organization')
    .values({ id: organization_id, name: 'Other', time_zone: 'UTC', created_at: now })
    .execute()
  await w.state.db.insertInto('project').values(project).execute()
  const key = await w.newKey({ project_id: project.id })
  t.equal((await w.ask('GET', `/v1/trunks/${body.trunk.id}`, { key })).status, 404)
  t.same((await w.ask('GET', '/v1/trunks', { key })).body.data, [])
  const headers = { 'X-Project-ID': w.demo.project_id }
  t.equal((await w.ask('GET', '/v1/trunks', { key, headers })).body.code, 'project_not_found')
  const twin = await w.ask('POST', '/v1/trunks', { key, body: TRUNK, headers: { 'Idempotency-Key': freshKey() } })
  t.equal(twin.status, 201)
  t.equal(twin.body.trunk.authentication.sources[0].standing, 'name_only', 'the overlapping source is name_only')
})

t.test('a key over its rate limit gets a 429 with Retry-After', async t => {
  const w = await controlPlane(t, { clock: standingClock(), rate_limit: { burst: 3, per_second: 0.5 } })
  const statuses = []
  for (let at = 0; at < 4; at += 1) statuses.push(await w.ask('GET', '/v1/projects'))
  t.same(
    statuses.map(answer => answer.status),
    [200, 200, 200, 429],
  )
  const [first] = statuses
  t.equal(first?.headers.get('x-ratelimit-limit'), '3')
  t.equal(first?.headers.get('x-ratelimit-remaining'), '2')
  t.equal(statuses[3]?.headers.get('retry-after'), '2')
  t.equal(statuses[3]?.body.code, 'rate_limited')
  t.equal((await w.ask('GET', '/v1/projects', { key: await w.newKey() })).status, 200, 'another key has its own limit')
})

t.test('creating a trunk adds one audit event, with its actor and without secrets', async t => {
  const w = await controlPlane(t)
  const { body, headers } = await create(w, TRUNK)
  const rows = await w.state.db.selectFrom('audit_event').selectAll().execute()
  t.equal(rows.length, 1)
  t.match(rows[0], {
    action: 'trunk.created',
    kind: 'trunks',
    actor_type: 'api_key',
    resource_id: body.trunk.id,
    trunk_id: body.trunk.id,
    to_revision: 1,
    request_id: headers.get('x-request-id') ?? 'none',
  })
  t.notMatch(rows[0]?.actor_detail, w.key.slice(-32), 'no secret in the trail')
})

t.test('health, readiness, error pages and the OpenAPI document need no credential', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  t.equal((await w.ask('GET', '/healthz', { key: null })).status, 200)
  const waiting = await w.ask('GET', '/readyz', { key: null })
  t.equal(waiting.status, 503)
  t.same(waiting.body.checks, { state_writable: true, signaling: false, edge: false, media: false })
  const now = iso(w.clock.now())
  for (const kind of ['signaling', 'edge', 'media'] as const)
    await w.state.db.insertInto('node').values({ id: kind, kind, pid: 1, started_at: now, heartbeat_at: now }).execute()
  t.equal((await w.ask('GET', '/readyz', { key: null })).status, 200)
  const machine = () => w.ask('GET', '/readyz/machine', { key: null })
  t.equal((await machine()).status, 503, 'another machine takes calls, this one does not')
  const works = { state_writable: true, signaling: true, edge: true, media: true }
  const served = await serveMetrics(w.settings.run_dir, 'signaling', createMetrics('signaling'), async () => works)
  t.teardown(() => served.close())
  t.equal((await machine()).status, 200)
  works.state_writable = false
  t.match(await machine(), { status: 503, body: { checks: works } }, 'its signaling says what it does')
  t.match((await w.ask('GET', '/docs/errors/validation_failed', { key: null })).text, 'validation_failed')
  t.match((await w.ask('GET', '/docs/errors/21210', { key: null })).text, 'caller_not_owned')
  t.equal((await w.ask('GET', '/docs/errors/nonsense', { key: null })).status, 404)
  const { body } = await w.ask('GET', '/v1/openapi.json', { key: null })
  t.equal(body.openapi, '3.1.0')
  t.ok(body.paths['/trunks/{trunk_id}'].get)
  t.equal((await w.ask('POST', '/healthz', { key: null })).status, 405)
})
