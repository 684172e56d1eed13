import { createHook } from 'node:async_hooks'
import { OPERATOR_SCOPES } from '../../../../core/domain/access/scopes.ts'
import { insertMember } from '../../../../core/state/people/organizations.ts'
import { saveSecurity, securityOf } from '../../../../core/state/people/second-factors.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, customer, operatorKey, trailOf } from '../../../support/operators.ts'
import { hashOnce } from '../../../support/passwords.ts'

// What operators do for, and against, the people of their customers.

const PASSWORD = 'a long enough password'
const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const clock = standingClock()
const w = await controlPlane(t, { clock, rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))

/** Adds an admin to a new customer. */
async function person(name: string) {
  const { organization_id } = await customer(ask, name)
  const email = `${name.replace(' ', '.').toLowerCase()}@people.example`
  const member = { id: `mem_${name}`, organization_id, email, role: 'org:admin', operator: 0 } as const
  const row = { ...member, password_hash: await hashOnce(PASSWORD), created_at: new Date().toISOString() }
  await w.state.transaction(trx => insertMember(trx, row))
  return { ...member, organization_id }
}

const signIn = (email: string, password = PASSWORD) =>
  w.ask('POST', '/console/api/session', { key: null, body: { email, password } })

/** The status of a request with the session of a sign-in. */
async function seen(session: Awaited<ReturnType<typeof signIn>>): Promise<number> {
  const Cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
  return (await w.ask('GET', '/console/api/session', { key: null, headers: { Cookie } })).status
}

t.test('a locked member has no session and cannot sign in; others of any customer can', async t => {
  const [ada, bob] = [await person('Ada One'), await person('Bob Two')]
  const [first, other] = [await signIn(ada.email), await signIn(bob.email)]
  t.same([await seen(first), await seen(other)], [200, 200])
  const locked = await ask('POST', `/members/${ada.id}/lock`, { reason: 'stolen laptop' })
  t.match(locked, { status: 200, body: { email: ada.email, locked_at: /Z$/, second_factor: false } })
  t.same([await seen(first), await seen(other)], [401, 200])
  t.match(await signIn(ada.email), { status: 403, body: { code: 'member_locked' } })
  const guess = await signIn(ada.email, 'another long password')
  t.match(guess, { status: 401, body: { code: 'unauthenticated' } }, 'who does not know the password learns nothing')
  t.match(await ask('POST', `/members/${ada.id}/lock`, { reason: 'again' }), { status: 409 })
  t.match((await trailOf(w, ada.organization_id)).at(-1), { action: 'member.locked', detail: 'stolen laptop' })
  t.notMatch(JSON.stringify(await trailOf(w, bob.organization_id)), /member.locked/)
  t.match(await ask('POST', `/members/${ada.id}/unlock`, { reason: 'found' }), {
    status: 200,
    body: { locked_at: null },
  })
  t.equal((await signIn(ada.email)).status, 200)
  const listed = (await ask('GET', `/members?organization_id=${bob.organization_id}`)).body.data
  t.match(listed, [{ email: bob.email }])
  t.equal(listed.length, 1)
})

t.test('a link to a new password works once, for a day, and a newer one ends it', async t => {
  const carl = await person('Carl Three')
  const session = await signIn(carl.email)
  const made = () => ask('POST', '/password-resets', { member_id: carl.id, reason: 'forgotten' })
  const tokenOf = (url: string) => new URL(url).hash.slice(1)
  const accept = (token: string, password = 'a quite different password') =>
    w.ask('POST', '/console/api/password-resets/accept', { key: null, body: { token, password } })
  const [older, newer] = [await made(), await made()]
  t.match(newer, { status: 201, body: { email: carl.email, url: /#[\w-]{43}$/ } })
  t.match(await accept(tokenOf(older.body.url)), { status: 404, body: { code: 'password_reset_over' } })
  t.equal((await accept(tokenOf(newer.body.url), 'short')).status, 422, 'a bad password leaves the link')
  t.match(await accept(tokenOf(newer.body.url)), { status: 200, body: { email: carl.email } })
  t.equal((await accept(tokenOf(newer.body.url))).status, 404)
  t.equal(await seen(session), 401, 'the sessions of the old password are over')
  t.equal((await signIn(carl.email)).status, 401)
  t.equal((await signIn(carl.email, 'a quite different password')).status, 200)
  const late = await made()
  clock.move(24 * 60 * 60 * 1000)
  t.equal((await accept(tokenOf(late.body.url))).status, 404, 'after a day')
  t.notMatch(JSON.stringify(await trailOf(w, carl.organization_id)), tokenOf(late.body.url))
})

t.test('a stranger who guesses a link or an invitation has no password hashed', async t => {
  const gus = await person('Gus Seven')
  const made = await ask('POST', '/password-resets', { member_id: gus.id, reason: 'forgotten' })
  let hashes = 0
  const hook = createHook({ init: (_id, type) => void (type === 'SCRYPTREQUEST' && hashes++) }).enable()
  t.teardown(() => hook.disable())
  const accept = (what: string, token: string) =>
    w.ask('POST', `/console/api/${what}/accept`, { key: null, body: { token, password: 'a quite different password' } })
  const guessed = 'x'.repeat(43)
  t.match(await accept('password-resets', guessed), { status: 404, body: { code: 'password_reset_over' } })
  t.match(await accept('invitations', guessed), { status: 404, body: { code: 'invitation_over' } })
  t.equal(hashes, 0)
  t.equal((await accept('password-resets', new URL(made.body.url).hash.slice(1))).status, 200)
  t.equal(hashes, 1)
})

t.test('a lost second factor is taken away, and no other one', async t => {
  const [dora, eve] = [await person('Dora Four'), await person('Eve Five')]
  for (const { id } of [dora, eve]) await saveSecurity(w.state.db, id, { totp_enabled: 1, totp_sealed: 'sealed' })
  t.equal((await signIn(dora.email)).status, 401, 'a code is needed')
  const reset = () => ask('POST', `/members/${dora.id}/reset-second-factor`, { reason: 'lost telephone' })
  t.match(await reset(), { status: 200, body: { second_factor: false } })
  t.equal((await signIn(dora.email)).status, 200)
  t.equal((await securityOf(w.state.db, eve.id)).totp_enabled, 1)
  t.match(await reset(), { status: 409, body: { code: 'state_conflict' } })
})

t.test('nobody makes, opens or ends the account of an operator who lacks one of its scopes', async t => {
  const fay = await person('Fay Six')
  const body = { reason: 'says who they are' }
  const refused = { status: 403, body: { code: 'scope_required' } }
  const without = async (lacking: string) =>
    asks(w, await operatorKey(w, { scopes: JSON.stringify(OPERATOR_SCOPES.filter(scope => scope !== lacking)) }))
  const [money, fraud] = [await without('operator:money'), await without('operator:fraud')]
  t.match(await money('POST', `/members/${fay.id}/appoint-operator`, body), refused)
  const before = await signIn(fay.email)
  t.match(await ask('POST', `/members/${fay.id}/appoint-operator`, body), { status: 200, body: { operator: true } })
  t.equal(await seen(before), 401, 'a session that began before has no new rights')
  await saveSecurity(w.state.db, fay.id, { totp_enabled: 1, totp_sealed: 'sealed' })
  for (const desk of [money, fraud]) {
    t.match(await desk('POST', `/members/${fay.id}/reset-second-factor`, body), refused)
    t.match(await desk('POST', '/password-resets', { member_id: fay.id, ...body }), refused)
    t.match(await desk('POST', `/members/${fay.id}/dismiss-operator`, body), refused)
  }
  t.equal((await securityOf(w.state.db, fay.id)).totp_enabled, 1)
  const again = await ask('POST', `/members/${fay.id}/appoint-operator`, body)
  t.match(again, { status: 409, body: { code: 'state_conflict' } })
  t.match(await ask('POST', `/members/${fay.id}/dismiss-operator`, body), { status: 200, body: { operator: false } })
  t.match((await trailOf(w, fay.organization_id)).slice(-2), [
    { action: 'member.operator_appointed' },
    { action: 'member.operator_dismissed' },
  ])
})
