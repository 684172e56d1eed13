import { request } from 'node:http'
import { FIRST_READS } from '../../../control/console/lib/first-reads.ts'
import { OPERATOR_ROUTES } from '../../../control/operator/index.ts'
import { totpOf } from '../../../control/session/sign-in.ts'
import { newId } from '../../../core/runtime/ids.ts'
import { standingClock } from '../../support/clock.ts'
import { CONSOLE_PASSWORD, type ControlPlane, controlPlane, freshKey } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { trailOf } from '../../support/operators.ts'
import { attempt, CONSOLE_API, type SignedIn, signIn } from '../../support/signed-in.ts'

const API = CONSOLE_API

t.test('a member signs in, is authenticated by the cookie, and signs out', async t => {
  const w = await controlPlane(t)
  const { status, body, headers } = await attempt(w, w.demo.email.toUpperCase(), CONSOLE_PASSWORD)
  t.equal(status, 200)
  const set = headers.get('set-cookie') ?? ''
  t.match(set, /^strowger_session=[\w-]{43}; Path=\/console; Max-Age=43200; HttpOnly; SameSite=Lax$/)
  t.match(body, { member: { email: w.demo.email, role: 'org:admin' }, projects: [{ id: w.demo.project_id }] })
  const me = await signIn(w)
  t.equal((await me.ask('GET', '/session')).body.csrf_token, me.csrf)
  const rows = await w.state.db.selectFrom('console_session').selectAll().execute()
  t.notOk(JSON.stringify(rows).includes(me.cookie.split('=')[1] ?? ''), 'the token itself is not stored')
  const unsigned = await me.ask('DELETE', '/session', undefined, { 'X-CSRF-Token': 'x' })
  t.equal(unsigned.status, 403)
  t.equal(unsigned.body.code, 'csrf_invalid')
  t.equal((await me.ask('DELETE', '/session')).status, 204)
  t.equal((await me.ask('GET', '/session')).status, 401)
})

t.test('API keys cannot call the routes that need a person', async t => {
  const w = await controlPlane(t)
  for (const [method, path] of [
    ['GET', '/api-keys'],
    ['POST', '/api-keys'],
    ['POST', '/voice-account/auth-token/reveal'],
    ['POST', '/recording-consent'],
    ['GET', '/members'],
  ] as const) {
    const { status, body } = await w.ask(method, `${API}${path}`, method === 'POST' ? { body: {} } : {})
    t.equal(status, 403, path)
    t.equal(body.code, 'person_required', path)
  }
  t.equal((await w.ask('GET', `${API}/session`, { key: null })).body.code, 'unauthenticated')
})

t.test(
  'failed sign-ins lock the account only at that address, and unknown accounts get exactly the same answers',
  async t => {
    const clock = standingClock()
    const w = await controlPlane(t, { clock })
    const guesses = async (email: string) => {
      const told = []
      for (let at = 0; at < 6; at += 1) {
        const { status, body, headers } = await attempt(w, email, 'wrong password')
        told.push({ status, code: body.code, detail: body.detail, retry: headers.get('retry-after') })
      }
      return told
    }
    const known = await guesses(w.demo.email)
    t.same(
      known.map(({ status, code }) => `${status} ${code}`),
      [...Array(5).fill('401 unauthenticated'), '429 account_locked'],
    )
    t.same(await guesses('nobody@strowger.local'), known, 'no answer reveals whether the account exists')
    t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD)).status, 429, 'the correct password is locked out too')
    const elsewhere = await from('127.0.0.9', w, w.demo.email, CONSOLE_PASSWORD)
    t.equal(elsewhere, 200, 'the owner can sign in from another address')
    clock.move(180_000)
    t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD)).status, 200, 'the lock ends after three minutes')
  },
)

t.test('a session behind a trusted proxy is of the client’s address', async t => {
  const w = await controlPlane(t, { trusted_proxies: ['loopback'] })
  const headers = { 'X-Forwarded-For': '1.2.3.4, 203.0.113.9' }
  const body = { email: w.demo.email, password: CONSOLE_PASSWORD }
  t.equal((await w.ask('POST', `${API}/session`, { key: null, body, headers })).status, 200)
  t.match(await w.state.db.selectFrom('console_session').select('address').execute(), [{ address: '203.0.113.9' }])
})

t.test('addresses of one IPv6 /64 sign in as one, and the session keeps its address', async t => {
  const w = await controlPlane(t, { clock: standingClock(), trusted_proxies: ['loopback'] })
  const enter = async (address: string, password: string): Promise<string> => {
    const body = { email: w.demo.email, password }
    const headers = { 'X-Forwarded-For': address }
    const answer = await w.ask('POST', `${API}/session`, { key: null, body, headers })
    return `${answer.status} ${answer.body.code ?? ''}`
  }
  const told: string[] = []
  for (let host = 1; host <= 31; host += 1) told.push(await enter(`2001:db8:1:2::${host}`, 'wrong password'))
  t.same(told, [...Array(5).fill('401 unauthenticated'), ...Array(25).fill('429 account_locked'), '429 rate_limited'])
  t.equal(await enter('2001:db8:1:3::7', CONSOLE_PASSWORD), '200 ', 'the owner signs in from another network')
  t.match(await w.state.db.selectFrom('console_session').select('address').execute(), [{ address: '2001:db8:1:3::7' }])
})

/** Signs in from `localAddress` and returns the status. */
function from(localAddress: string, w: ControlPlane, email: string, password: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request(`${w.base_url}${API}/session`, { method: 'POST', localAddress, headers }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject).end(JSON.stringify({ email, password }))
  })
}

t.test('a one-time code is set up, required at sign-in, and accepted only once', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const me = await signIn(w)
  const { secret, uri } = (await me.ask('POST', '/session/totp')).body
  t.match(uri, /^otpauth:\/\/totp\/Strowger:/)
  const code = (shift = 0) => totpOf(secret).generate({ timestamp: clock.now() + shift * 30_000 })
  t.equal((await me.ask('PUT', '/session/totp', { enabled: true, code: '000000' })).status, 422)
  t.equal((await me.ask('PUT', '/session/totp', { enabled: true, code: code(-1) })).status, 200)
  t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD)).status, 401, 'the password is not enough')
  t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD, code(-1))).status, 401, 'a used code is refused')
  const both = await attempt(w, w.demo.email, CONSOLE_PASSWORD, code())
  t.equal(both.status, 200)
  t.equal(both.body.member.totp_enabled, true)
  t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD, code())).status, 401)
})

t.test('recovery codes open the account once each, only with the password, and are audited', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const me = await signIn(w)
  const organization_id = (await me.ask('GET', '/session')).body.organization.id
  const begin = async (member: SignedIn): Promise<{ code: () => string; recovery: string[] }> => {
    const { secret } = (await member.ask('POST', '/session/totp')).body
    const code = () => totpOf(secret).generate({ timestamp: clock.now() })
    const on = await member.ask('PUT', '/session/totp', { enabled: true, code: code() })
    clock.move(30_000)
    return { code, recovery: on.body.recovery_codes }
  }
  const enter = (code: string, password = CONSOLE_PASSWORD) => attempt(w, w.demo.email, password, code)
  const { code, recovery } = await begin(me)
  t.equal(new Set(recovery).size, 10)
  for (const one of recovery) t.match(one, /^([A-Z2-7]{4}-){3}[A-Z2-7]{4}$/)
  const [first = '', second = '', third = '', fourth = '', fifth = ''] = recovery

  const given = { email: 'eva@strowger.local', password: CONSOLE_PASSWORD, role: 'org:admin' }
  t.equal((await me.ask('POST', '/members', given)).status, 201)
  const other = await begin(await signIn(w, given.email))
  t.equal((await enter(other.recovery[0] ?? '')).status, 401, 'a code of another member opens nothing')
  t.equal((await enter(first, 'a wrong password')).status, 401)
  t.match(await enter(first), { status: 200, body: { member: { recovery_codes_left: 9 } } })
  t.equal((await enter(first)).status, 401, 'it works once')
  t.equal((await enter(second.toLowerCase().replaceAll('-', ''))).status, 200, 'as a person may type it')
  const both = await Promise.all([enter(third), enter(third)])
  t.same(both.map(({ status }) => status).sort(), [200, 401], 'two sign-ins at once share no code')

  t.equal((await me.ask('POST', '/session/recovery-codes', { code: 'AAAA-AAAA-AAAA-AAAA' })).status, 422)
  const again = await me.ask('POST', '/session/recovery-codes', { code: code() })
  t.equal(again.body.recovery_codes.length, 10)
  t.equal((await enter(fourth)).status, 401, 'new codes end the earlier ones')
  const [sixth = '', seventh = ''] = again.body.recovery_codes
  t.equal((await enter(sixth)).status, 200)
  const rows = JSON.stringify(await w.state.db.selectFrom('member_recovery_code').selectAll().execute())
  const trail = await trailOf(w, organization_id)
  for (const one of [...recovery, ...again.body.recovery_codes])
    t.notOk((rows + JSON.stringify(trail)).includes(one), 'neither the rows nor the trail have a code')
  const used = trail.filter(({ action }) => action === 'member.recovery_code_used')
  t.equal(used.length, 4)
  t.equal(trail.filter(({ action }) => action === 'member.recovery_codes_made').length, 1)

  t.match(await me.ask('PUT', '/session/totp', { enabled: false, code: fifth }), { status: 422 })
  t.match(await me.ask('PUT', '/session/totp', { enabled: false, code: seventh }), { status: 200 })
  t.match(await attempt(w, w.demo.email, CONSOLE_PASSWORD), { status: 200, body: { member: { totp_enabled: false } } })
  t.match(await me.ask('POST', '/session/recovery-codes', { code: seventh }), { status: 409 })
  const left = await w.state.db.selectFrom('member_recovery_code').select('member_id').execute()
  t.equal(left.length, 10, 'only the other member has codes')
})

t.test('a stolen session finds no code of the second factor by guessing', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const me = await signIn(w)
  const { secret } = (await me.ask('POST', '/session/totp')).body
  const code = () => totpOf(secret).generate({ timestamp: clock.now() })
  t.equal((await me.ask('PUT', '/session/totp', { enabled: true, code: code() })).status, 200)
  clock.move(60_000)
  const guesses = [
    ['POST', '/session/recovery-codes', {}],
    ['PUT', '/session/totp', { enabled: false }],
  ] as const
  const wrong = code() === '000000' ? '111111' : '000000'
  const told: string[] = []
  for (let at = 0; at < 6; at += 1) {
    const [method, path, body] = guesses[at % 2] ?? guesses[0]
    const { status, body: answer } = await me.ask(method, path, { ...body, code: wrong })
    told.push(`${status} ${answer.code}`)
  }
  t.same(told, [...Array(5).fill('422 validation_failed'), '429 account_locked'], 'both ways have one limit')
  t.equal((await me.ask('PUT', '/session/totp', { enabled: false, code: code() })).status, 429)
  clock.move(180_000)
  t.equal((await me.ask('PUT', '/session/totp', { enabled: false, code: code() })).status, 200, 'its owner goes on')
})

t.test('a stolen session finds no password by guessing, and its owner may sign in meanwhile', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const sessions = [await signIn(w), await signIn(w)]
  const changed = async (at: number, current_password: string): Promise<string> => {
    const body = { current_password, new_password: 'another long password' }
    const answer = await sessions[at % 2]?.ask('PUT', '/session/password', body)
    return `${answer?.status} ${answer?.body?.code ?? ''}`
  }
  const told: string[] = []
  for (let at = 0; at < 6; at += 1) told.push(await changed(at, 'wrong password'))
  t.same(told, [...Array(5).fill('422 validation_failed'), '429 account_locked'], 'all sessions have one limit')
  t.equal(await changed(0, CONSOLE_PASSWORD), '429 account_locked', 'the correct password is locked out too')
  t.equal((await attempt(w, w.demo.email, CONSOLE_PASSWORD)).status, 200)
  clock.move(180_000)
  t.equal(await changed(0, CONSOLE_PASSWORD), '204 ', 'its owner goes on')
})

t.test('an API key authenticates, is rotated with an overlap, and stays revoked', async t => {
  const w = await controlPlane(t)
  const me = await signIn(w)
  const body = { name: 'Deploy', role: 'org:engineer', scopes: ['service_configuration:read', 'organization:read'] }
  const key_id = freshKey()
  const made = await me.ask('POST', '/api-keys', body, { 'Idempotency-Key': key_id })
  t.equal(made.status, 201)
  t.match(made.body.api_key, /^sk_live_[A-Z2-7]{12}_[0-9a-f]{32}$/)
  t.match(made.body.key, { name: 'Deploy', state: 'active', retires_at: null, rotated_from_id: null })
  const replay = await me.ask('POST', '/api-keys', body, { 'Idempotency-Key': key_id })
  t.equal(replay.body.api_key, null, 'only the first answer has the whole key')
  const works = async (key: string) => (await w.ask('GET', '/v1/trunks', { key })).status
  t.equal(await works(made.body.api_key), 200)

  const path = `/api-keys/${made.body.key.id}`
  t.equal((await me.ask('POST', `${path}/rotate`, { overlap_hours: 25 })).status, 422)
  t.equal((await me.ask('POST', `${path}/rotate`, { overlap_hours: 1.5 })).status, 422)
  const rotated = await me.ask('POST', `${path}/rotate`, { overlap_hours: 1 })
  t.match(rotated.body.key, { name: 'Deploy', scopes: body.scopes, rotated_from_id: made.body.key.id })
  t.equal(await works(made.body.api_key), 200, 'the old key works during the overlap')
  t.equal(await works(rotated.body.api_key), 200)
  t.equal((await me.ask('POST', `${path}/rotate`, { overlap_hours: 0 })).body.code, 'state_conflict')
  const next = await me.ask('POST', `/api-keys/${rotated.body.key.id}/rotate`, { overlap_hours: 0 })
  t.equal(await works(rotated.body.api_key), 401, 'without an overlap the old key stops at once')
  t.equal(await works(next.body.api_key), 200)

  const revoke = (sent: object) => me.ask('POST', `/api-keys/${next.body.key.id}/revoke`, sent)
  t.equal((await revoke({ confirm_name: 'deploy', reason: 'leaked' })).body.code, 'confirm_name_mismatch')
  t.equal((await revoke({ confirm_name: 'Deploy' })).status, 422)
  t.equal((await revoke({ confirm_name: 'Deploy', reason: 'leaked' })).body.state, 'revoked')
  t.equal(await works(next.body.api_key), 401)
  t.equal((await revoke({ confirm_name: 'Deploy', reason: 'again' })).body.code, 'state_conflict')

  const trail = await w.ask('GET', '/v1/audit?kind=credentials&actor=user')
  t.equal(trail.body.data[0].action, 'api_key.revoked')
  t.equal(trail.body.data[0].detail, 'leaked')
  t.notMatch(JSON.stringify(trail.body), next.body.api_key)
})

t.test('a member can grant only roles at or below their own, and scopes that both roles have', async t => {
  const w = await controlPlane(t)
  const admin = await signIn(w)
  const password = 'another long password'
  const engineer = { email: 'Eng@strowger.local', password, role: 'org:engineer' }
  t.equal((await admin.ask('POST', '/members', engineer)).status, 201)
  t.equal((await admin.ask('POST', '/members', engineer)).body.code, 'resource_exists')
  const me = await signIn(w, 'eng@strowger.local', password)
  const key = (role: string, scopes: string[]) => me.ask('POST', '/api-keys', { name: 'k', role, scopes })
  t.equal((await key('org:admin', ['organization:read'])).body.code, 'role_forbidden')
  t.equal((await key('org:billing', ['billing:read'])).body.code, 'role_forbidden')
  t.equal((await key('org:viewer', ['service_configuration:write'])).status, 422)
  t.equal((await key('org:engineer', ['audit:read'])).status, 422)
  t.equal((await key('org:viewer', ['service_configuration:read'])).status, 201)
  t.equal((await key('org:viewer', [])).status, 422)
  t.equal((await me.ask('GET', '/members')).body.code, 'role_forbidden')
  const { data } = (await admin.ask('GET', '/members')).body
  const [first, second] = data
  t.equal(
    (await admin.ask('DELETE', `/members/${first.id}`)).body.code,
    'state_conflict',
    'the last admin cannot be removed',
  )
  t.equal((await admin.ask('PATCH', `/members/${second.id}`, { role: 'org:viewer' })).body.role, 'org:viewer')
  t.equal((await me.ask('GET', '/session')).status, 401, "a changed role ends the member's sessions")
  const viewer = await signIn(w, 'eng@strowger.local', password)
  t.equal((await viewer.ask('POST', '/voice-account/auth-token/reveal')).body.code, 'role_forbidden')
})

t.test('a member reveals and rotates the auth token, and the audit trail never contains it', async t => {
  const w = await controlPlane(t)
  const me = await signIn(w)
  const shown = await me.ask('POST', '/voice-account/auth-token/reveal')
  t.equal(shown.body.auth_token, w.demo.auth_token)
  const rotated = await me.ask('POST', '/voice-account/auth-token/rotate')
  t.match(rotated.body.auth_token, /^sk_live_[A-Za-z0-9]{32}$/)
  t.match(rotated.body.account, { account_sid: w.demo.account_sid, desired_revision: 2 })
  t.equal((await w.voice('GET', '/Calls.json')).status, 401, 'the old token is refused')
  const basic = Buffer.from(`${w.demo.account_sid}:${rotated.body.auth_token}`).toString('base64')
  t.equal((await w.voice('GET', '/Calls.json', undefined, { Authorization: `Basic ${basic}` })).status, 200)
  const rows = JSON.stringify(await w.state.db.selectFrom('audit_event').selectAll().execute())
  t.notOk(rows.includes(w.demo.auth_token) || rows.includes(rotated.body.auth_token))
  const { body } = await w.ask('GET', '/v1/voice-account')
  t.match(body, { auth_token_masked: `sk_live_${'*'.repeat(32)}`, status: 'active' })
})

t.test('a member accepts recording consent, rotates a webhook secret and uses the management API', async t => {
  const w = await controlPlane(t)
  const me = await signIn(w)
  await w.state.db.deleteFrom('recording_consent').execute()
  const { terms_version, accepted } = (await me.ask('GET', '/recording-consent')).body
  t.equal(accepted, false)
  t.equal((await me.ask('POST', '/recording-consent', { terms_version: 'old' })).status, 422)
  t.equal((await me.ask('POST', '/recording-consent', { terms_version })).body.accepted_by, w.demo.email)
  const url = 'https://app.example.com/hook'
  const made = await me.ask('POST', '/v1/webhook-endpoints', { url, event_kinds: ['call.ended'] })
  t.equal(made.status, 201)
  const path = `/webhook-endpoints/${made.body.endpoint.id}/rotate-secret`
  const rotated = await me.ask('POST', path, { overlap_hours: 24 })
  t.not(rotated.body.signing_secret, made.body.signing_secret)
  const { data } = (await me.ask('GET', '/v1/webhook-endpoints')).body
  t.equal(data[0].previous_secret_retires_at, rotated.body.previous_secret_retires_at)
})

t.test('an admin changes no operator’s membership; an operator does', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const admin = await signIn(w)
  await db.updateTable('member').set({ operator: 0 }).execute()
  for (const email of ['ops@example.com', 'boss@example.com']) {
    const member = { email, password: CONSOLE_PASSWORD, role: 'org:admin' }
    t.equal((await admin.ask('POST', '/members', member)).status, 201)
  }
  await db.updateTable('member').set({ operator: 1 }).where('email', '=', 'ops@example.com').execute()
  const ops = await signIn(w, 'ops@example.com')
  const { data } = (await admin.ask('GET', '/members')).body
  const id = data.find(({ email }: { email: string }) => email === 'ops@example.com').id
  const refused = { status: 403, body: { code: 'role_forbidden' } }
  t.match(await admin.ask('PATCH', `/members/${id}`, { role: 'org:viewer' }), refused)
  t.match(await admin.ask('DELETE', `/members/${id}`), refused)
  t.equal((await ops.ask('GET', '/session')).status, 200, 'the operator is still signed in')
  t.match(await ops.ask('PATCH', `/members/${id}`, { role: 'org:engineer' }), { status: 200 })
})

t.test('a suspended organization changes nothing, and its members can still leave', async t => {
  const w = await controlPlane(t)
  const me = await signIn(w)
  await w.state.db.updateTable('member').set({ operator: 0 }).execute()
  await w.state.db.updateTable('organization').set({ status: 'suspended' }).execute()
  const refused = { status: 409, body: { code: 'organization_suspended' } }
  t.match(
    await me.ask('POST', '/members', { email: 'x@example.com', password: CONSOLE_PASSWORD, role: 'org:admin' }),
    refused,
  )
  t.same(await w.state.db.selectFrom('member').select('id').where('email', '=', 'x@example.com').execute(), [])
  t.equal((await me.ask('GET', '/members')).status, 200)
  t.equal((await me.ask('DELETE', '/session')).status, 204)
})

t.test('a request that began before the suspension changes nothing after it', async t => {
  const w = await controlPlane(t)
  const me = await signIn(w)
  await w.state.db.updateTable('member').set({ operator: 0 }).execute()
  // Hashing the password takes longer than the suspension.
  const adding = me.ask('POST', '/members', { email: 'y@example.com', password: CONSOLE_PASSWORD, role: 'org:admin' })
  await w.state.db.updateTable('organization').set({ status: 'suspended' }).execute()
  t.match(await adding, { status: 409, body: { code: 'organization_suspended' } })
})

t.test('an operator’s session uses /operator/v1 by its rule; a customer’s session gets nothing of it', async t => {
  const boundless = { burst: 1_000_000, per_second: 1_000_000 }
  const w = await controlPlane(t, { bad_credentials: boundless })
  const ops = await signIn(w)
  const given = { name: 'Acme', time_zone: 'Africa/Lagos', contact_email: 'a@acme.example' }
  const create = (headers: Record<string, string> = {}) => ops.ask('POST', '/operator/v1/organizations', given, headers)
  t.match(await create({ 'X-CSRF-Token': 'x' }), { status: 403, body: { code: 'csrf_invalid' } })
  const known = () => w.state.db.selectFrom('organization').select(['id', 'name']).orderBy('created_at').execute()
  t.same((await known()).length, 1, 'another site’s write makes nothing')
  t.equal((await create()).status, 201)
  t.match(await known(), [{ name: 'Demo' }, { name: 'Acme' }])
  const of = async (organization_id: string) => (await trailOf(w, organization_id)).at(-1)?.actor
  t.match(await of('installation'), `operator ${w.demo.email} mem_`)
  t.equal(await of((await known())[1]?.id ?? ''), 'operator Operator -', 'the customer reads no name')

  await w.state.db.updateTable('member').set({ operator: 0 }).execute()
  for (const { method, path } of OPERATOR_ROUTES) {
    const at = `/operator/v1${path.replace(/\{\w+\}/g, 'nothing')}`
    const found = await ops.ask(method.toUpperCase(), at, method === 'get' ? undefined : {})
    t.match(found, { status: 403, body: { code: 'role_forbidden' } }, `${method} ${path}`)
  }
  const at = `${API}/operator/v1/organizations`
  t.match(await w.ask('GET', at, { key: null }), { status: 401 })
  t.match(await w.ask('GET', at), { status: 403, body: { code: 'person_required' } })
})

t.test('an operator’s session from elsewhere than operators come from gets nothing of /operator/v1', async t => {
  const w = await controlPlane(t, { operator_sources: ['203.0.113.0/24'] })
  const ops = await signIn(w)
  t.equal((await ops.ask('GET', '/v1/trunks')).status, 200)
  t.match(await ops.ask('GET', '/operator/v1/organizations'), {
    status: 403,
    body: { code: 'operator_source_forbidden' },
  })
})

t.test('a page names the session and all of its scripts, so that none is found in another', async t => {
  const w = await controlPlane(t)
  const get = (path: string) => w.ask('GET', path, { key: null })
  for (const path of ['/', '/calls', '/calls/CA0', '/operator/customers/org_1', '/no-such-page']) {
    const { headers, text } = await get(`/console${path}`)
    const link = headers.get('link') ?? ''
    t.match(link, '</console/api/session>; rel=preload; as=fetch; crossorigin', path)
    const named = [...`${text} ${link}`.matchAll(/\/console\/(assets\/[\w.-]+\.js)/g)].map(([, file]) => file)
    for (const file of named) {
      const script = await get(`/console/${file}`)
      t.equal(script.status, 200, file)
      const imported = [...script.text.matchAll(/\bfrom"\.\/([^"]+)"/g)].map(([, name]) => `assets/${name}`)
      t.same(
        imported.filter(name => !named.includes(name)),
        [],
        `${path} names what ${file} imports`,
      )
    }
    t.equal(link.includes('modulepreload'), path !== '/no-such-page', 'a page has scripts of its own')
  }
  t.equal((await get('/console/api/session')).headers.get('link'), null)
})

t.test('a page names its first reads for a member who may make them, in an organization of one project', async t => {
  const w = await controlPlane(t)
  const readsOf = async (path: string, cookie?: string) => {
    const { headers } = await w.ask('GET', `/console${path}`, { key: null, headers: cookie ? { Cookie: cookie } : {} })
    t.match(headers.get('vary'), 'Cookie', 'no cache gives the page of one person to another')
    const link = headers.get('link') ?? ''
    return [...link.matchAll(/<\/console\/api(\/v1[^>]*)>; rel=preload; as=fetch; crossorigin/g)].map(
      ([, read]) => read,
    )
  }
  const me = await signIn(w)
  for (const [path, { paths }] of Object.entries(FIRST_READS)) {
    t.same(await readsOf(path, me.cookie), paths)
    for (const read of paths) t.equal((await me.ask('GET', read)).status, 200, `${read} names no project`)
    t.same(await readsOf(path), [], 'nobody is signed in')
    t.same(await readsOf(path, `strowger_session=${'x'.repeat(43)}`), [], 'a session that is none')
    t.same(await readsOf(`${path}?window=1h`, me.cookie), [], 'an address with a query reads something else')
  }
  const billing = { email: 'bills@strowger.local', password: CONSOLE_PASSWORD, role: 'org:billing' }
  t.equal((await me.ask('POST', '/members', billing)).status, 201)
  const clerk = await signIn(w, billing.email)
  const told = { code: 'scope_required', detail: 'Your role, billing, does not include live_calls:read.' }
  t.match(await clerk.ask('GET', '/v1/live-calls'), { status: 403, body: told }, 'a person has no key to change')
  t.same(await readsOf('/', clerk.cookie), [], 'the role may not read them')
  t.equal((await readsOf('/calls', clerk.cookie)).length, 1)

  const project = await w.state.db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  await w.state.db
    .insertInto('project')
    .values({ ...project, id: newId.project(), name: 'Second' })
    .execute()
  t.same(await readsOf('/', me.cookie), [], 'only the page knows which of two projects is chosen')
})
