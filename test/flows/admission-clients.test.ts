import { randomUUID } from 'node:crypto'
import { type ClientCredential, makeClientCredential } from '../../core/runtime/client-token.ts'
import { authorize, openAgent, place } from '../support/agents.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'

// Browser clients with the credentials of short-lived tokens. The peers here use plain SIP over UDP, because
// registration and calls do not depend on the transport. test/flows/b2bua-browser tests the media of browsers.

const WORLD = '+2348030000008'

t.test('clients register and call by tokens, and a Dial reaches them', async t => {
  const w = await sharedWorld(t)
  const { db } = w.state
  const own = w.numbers[3] ?? ''
  const seconds = Math.floor(Date.now() / 1000)
  const facts = { project_id: w.project_id, domain: 'localhost', auth_token: w.auth_token }
  const token = (
    client: string,
    over: { caller?: string | null; expires?: number; allowed?: readonly ('in' | 'out')[] } = {},
  ): ClientCredential =>
    makeClientCredential(
      {
        client,
        caller: over.caller ?? null,
        expires_at_seconds: over.expires ?? seconds + 600,
        allowed: over.allowed ?? ['in', 'out'],
      },
      facts,
    )
  const alice = token('alice')
  const phone = await openAgent(t, { ip: '127.0.0.21' })
  const hop = `sip:${w.sip.host}:${w.sip.port}`

  const register = async (as: ClientCredential, name = as.client, password = as.password) => {
    const uri = `sip:${as.domain}`
    const headers = { Expires: '300', Contact: `<sip:${name}@${phone.ip}:${phone.port}>` }
    const send = (more: Record<string, string>) =>
      phone.ua.request('REGISTER', uri, { hop, to: `<sip:${name}@${as.domain}>`, headers: { ...headers, ...more } })
    const first = await send({})
    if (first?.status !== 401) return first
    t.ok(first?.lines('www-authenticate').every(line => line.includes(`realm="${as.domain}"`)))
    const Authorization = authorize(first, { username: as.username, password, uri, method: 'REGISTER' })
    return send({ Authorization })
  }
  const invite = async (as: ClientCredential, called: string) => {
    const uri = `sip:${called}@${as.domain}`
    const options = { to: w.sip, caller: as.client }
    const first = await place(phone, uri, options)
    if (first.status !== 401) return first
    const facts = { username: as.username, password: as.password, uri, method: 'INVITE' }
    const headers = (uses: number) => ({ Authorization: authorize(first.response, { ...facts, uses }) })
    return place(phone, uri, { ...options, headers })
  }
  const lastCall = () => db.selectFrom('call').selectAll().orderBy('position', 'desc').executeTakeFirstOrThrow()

  t.test('a token registers only its own name, until it expires', async t => {
    const registered = await register(alice)
    t.equal(registered?.status, 200)
    t.match(registered?.lines('contact')[0], /alice@.*expires=(300|2\d\d)/)
    t.equal((await register(alice, 'bob'))?.status, 403, 'another name')
    t.equal((await register(alice, 'alice', 'wrong'))?.status, 401, 'another password')
    t.equal((await register(token('dialer', { allowed: ['out'] })))?.status, 403, 'a token that may only call')
    t.equal((await register(token('late', { expires: seconds - 1 })))?.status, 403, 'after its time')
    const short = await register(token('short', { expires: Math.floor(Date.now() / 1000) + 100 }))
    t.match(short?.lines('contact')[0], /expires=(\d\d|100)$/, 'no longer than the token')
    const of_clients = `client:${w.project_id}:%`
    const registrations = db.selectFrom('registration').where('credential_id', 'like', of_clients)
    const rows = await registrations.select(['credential_id', 'contact']).execute()
    t.same(rows.map(row => row.credential_id).sort(), [`client:${w.project_id}:alice`, `client:${w.project_id}:short`])
  })

  t.test('a client calls the world as the project, from its caller or the first number', async t => {
    const answered = await invite(alice, WORLD)
    t.equal(answered.status, 200)
    answered.call.hangUp()
    const call = await lastCall()
    const first = [...w.numbers].sort()[0]
    t.match(call, { origin: 'client', direction: 'outbound', from_number: first, to_number: WORLD })
    const { checks } = JSON.parse(call.decision_trace ?? '{}')
    t.match(
      checks.find((check: { check: string }) => check.check === 'caller_number'),
      { result: 'passed' },
    )
    const named = await invite(token('alice', { caller: own }), WORLD)
    t.equal(named.status, 200)
    named.call.hangUp()
    t.equal((await lastCall()).from_number, own)
    const foreign = await invite(token('alice', { caller: '+2348039999999' }), WORLD)
    t.equal(foreign.status, 403)
    t.match(foreign.response?.get('warning'), /2348039999999/)
    const mute = await invite(token('desk', { allowed: ['in'] }), WORLD)
    t.equal(mute.status, 403)
    t.match(mute.response?.get('warning'), /the token of client .*desk.* has direction inbound/)
    t.equal((await invite(alice, '12')).status, 404)
    await until(
      'the calls have ended',
      async () => (await db.selectFrom('cdr').select('call_sid').execute()).length >= 2,
    )
  })

  t.test('a client calls an application, which gets its name; a Dial reaches the client with parameters', async t => {
    const web = await webServer(t, {
      '/voice': `<Response><Dial callerId="${own}"><Client><Identity>alice</Identity><Parameter name="case" value="A 7"/></Client></Dial></Response>`,
      '/nobody': '<Response><Dial action="/after"><Client>nobody</Client></Dial></Response>',
      '/after': '<Response><Hangup/></Response>',
    })
    await w.routeToApplication(w.numbers[4] ?? '', `${web.url}/voice`)
    await w.routeToApplication(w.numbers[5] ?? '', `${web.url}/nobody`)
    const asked = invite(token('bob'), w.numbers[4] ?? '')
    t.equal((await web.seen('/voice')).fields.get('From'), 'client:bob')
    const rung = await until('alice is called', () => phone.invites[0])
    t.match(rung.uri, /^sip:alice@127\.0\.0\.21/)
    t.equal(rung.call.invite?.get('x-parameter-case'), 'A%207')
    t.match(rung.call.invite?.get('from'), own)
    const answered = await asked
    t.equal(answered.status, 200)
    const child = await until('the child is in progress', () =>
      db
        .selectFrom('call')
        .selectAll()
        .where('to_number', '=', 'client:alice')
        .where('status', '=', 'in-progress')
        .executeTakeFirst(),
    )
    t.match(child, { direction: 'outbound-dial', from_number: own })
    answered.call.hangUp()
    await until('alice is hung up on', () => rung.call.state === 'ended')
    const other = await invite(token('bob'), w.numbers[5] ?? '')
    t.equal(other.status, 200)
    const after = await web.seen('/after')
    t.match(after.fields.get('DialCallStatus'), /^(no-answer|failed)$/)
    other.call.hangUp()
  })

  t.test('a program makes tokens that register and call as it says, for at most a day', async t => {
    const make = (body: object) => w.manage('POST', '/client-tokens', body, { 'idempotency-key': randomUUID() })
    const made = async (body: object): Promise<ClientCredential> => {
      const { status, body: token } = await make(body)
      t.equal(status, 200)
      return { ...token, client: token.identity }
    }
    const reached = await made({ identity: 'carol', allowed: ['in'], ttl_seconds: 120 })
    const registered = await register(reached)
    t.equal(registered?.status, 200)
    t.match(registered?.lines('contact')[0], /carol@.*expires=(1?\d\d)$/, 'the registration ends with the token')
    t.equal((await invite(reached, WORLD)).status, 403, 'it may be called only')
    const dialer = await made({ identity: 'dialer', allowed: ['out'], caller: own })
    t.equal((await register(dialer))?.status, 403, 'it may call only')
    const calling = await invite(dialer, WORLD)
    t.equal(calling.status, 200)
    calling.call.hangUp()
    t.equal((await lastCall()).from_number, own)
    for (const [pointer, wrong] of [
      ['/identity', { identity: 'a b' }],
      ['/allowed', { identity: 'a', allowed: [] }],
      ['/caller', { identity: 'a', caller: '+2348039999999' }],
      ['/ttl_seconds', { identity: 'a', ttl_seconds: 86_401 }],
    ] as const) {
      const { status, body } = await make(wrong)
      t.equal(status, 422, pointer)
      t.match(JSON.stringify(body.errors), new RegExp(pointer))
    }
  })

  t.test('closing the account invalidates every client token', async t => {
    await db.updateTable('voice_account').set({ status: 'revoked' }).execute()
    await db
      .updateTable('configuration')
      .set(eb => ({ revision: eb('revision', '+', 1) }))
      .execute()
    await until('the account is applied', async () => {
      const { status, call } = await invite(alice, WORLD)
      if (status === 200) call.hangUp()
      return status === 403
    })
    t.equal((await register(alice).catch(() => undefined))?.status, 403)
  })
})
