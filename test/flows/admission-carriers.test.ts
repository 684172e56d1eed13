import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import type { TlsOptions } from '../../core/runtime/certificate.ts'
import { systemClock } from '../../core/runtime/clock.ts'
import { createHttpClient } from '../../core/runtime/http/index.ts'
import { createLog } from '../../core/runtime/log.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import type { IncomingRequest } from '../../signaling/edge/useragent/message-parts.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { Stir } from '../../signaling/trunks/stir.ts'
import { testTls } from '../conformance/edge/test-tls.ts'
import { openAgent, place, sdpOf } from '../support/agents.ts'
import { callUntilDecided } from '../support/busy.ts'
import { onEmbedded } from '../support/edges.ts'
import t, { type Test } from '../support/harness/index.ts'
import { digestAnswer } from '../support/phone.ts'
import { rated } from '../support/rated.ts'
import { authority } from '../support/stir.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { type World, world } from '../support/world.ts'

// A carrier that requires registration: the test's own registrar, with digest, on a real socket.

const REALM = 'carrier.example'
const PASSWORD = 'S3cret of the carrier'
const REGISTRAR = '127.0.0.31'
const WORLD = '+2348030004711'

t.test('registers with a carrier, renews before expiry, and unregisters at the end', async t => {
  const ca = await authority(t)
  const w = await world(t, {
    STROWGER_STIR_CERT: ca.cert_file,
    STROWGER_STIR_KEY: ca.key_file,
    STROWGER_STIR_X5U: ca.x5u('signer'),
    STROWGER_STIR_CA: ca.ca_file,
    // The authority's web server is trusted like any other in the system's certificate store.
    NODE_EXTRA_CA_CERTS: ca.ca_file,
  })
  const registrar = await openRegistrar(t)
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', ca: ca.ca_pem })
  t.teardown(() => http.close())
  const stir = new Stir({
    config: {
      stir: {
        signing: { cert_file: ca.cert_file, key_file: ca.key_file, x5u: ca.x5u('signer') },
        anchors_file: ca.ca_file,
      },
    },
    ...{ http, clock: systemClock, log: createLog('test', { log_level: 'silent' }) },
  })
  const uri = `sip:${REGISTRAR}:${registrar.port}`
  const id = (await strowger(w, ['carriers', 'add', 'Telco', '--source', `${REGISTRAR}/32`])).trim()
  const setUp = ['carriers', 'register', id, '--registrar', uri, '--username', 'acme', '--expires', '60']
  const refused = await strowger(w, [...setUp.slice(0, -1), '5'], 'x').catch(error => String(error))
  t.match(refused, /seconds from 60 to 86400/)
  registrar.grants(3)
  await strowger(w, setUp, `${PASSWORD}\n`)

  await until('we are registered', () => registrar.bound().size > 0)
  const [contact] = registrar.bound()
  t.equal(contact, `sip:acme@${w.sip.host}:${w.sip.port}`)
  const registered = /register acme at sip:127\.0\.0\.31:\d+: registered until 2/
  await until('the command says so', async () => registered.test(await strowger(w, ['carriers', 'list'])))
  const before = registrar.accepted()
  await until('it is renewed before its end', () => registrar.accepted() > before + 1)
  // From now on no registration ends while a slow machine runs another part of the test.
  registrar.grants(600)
  const short = registrar.accepted()
  await until('the last short one is renewed', () => registrar.accepted() > short)
  t.notMatch(w.log(), PASSWORD)
  t.notMatch(await strowger(w, ['carriers', 'list', '--json']), /password|S3cret/)

  t.test('a carrier’s call to our contact carries the number in To', async t => {
    const web = await webServer(t, { '/voice': '<Response><Reject/></Response>' })
    const number = w.numbers[2] ?? ''
    await w.routeToApplication(number, `${web.url}/voice`)
    const caller = '+2348030001111'
    const seen = async (headers: Record<string, string>) => {
      const count = web.requests.length
      const [to, from] = [`<sip:${number}@${REALM}>`, `<sip:${caller}@carrier.example>`]
      registrar.calls(contact ?? '', { to, from, headers })
      const { fields } = await until('the application is asked', () => web.requests[count])
      return [fields.get('To'), fields.get('StirVerstat')]
    }
    const Identity = stir.identity({ caller, called: number, attest: 'A' }) ?? ''
    t.same(await seen({ Identity }), [number, 'TN-Validation-Passed-A'], 'signed by its network')
    const { decision_trace } = await lastCall(w)
    t.match(JSON.parse(decision_trace ?? '{}'), { caller_identity: { verstat: 'TN-Validation-Passed-A' } })
    t.same(await seen({}), [number, 'No-TN-Validation'], 'not signed')
    const other = stir.identity({ caller: '+2348030002222', called: number, attest: 'A' }) ?? ''
    t.same(await seen({ Identity: other }), [number, 'TN-Validation-Failed-A'], 'signed for somebody else')
    t.match(
      JSON.parse((await lastCall(w)).decision_trace ?? '{}').caller_identity.detail,
      /signed for the caller 2348030002222/,
    )
  })

  t.test('a call to the carrier is signed with attestation A, and its challenge is answered', async t => {
    await rated(w)
    await w.state.db.updateTable('carrier').set({ enabled: 0 }).where('sandbox', '=', 1).execute()
    const route = { id: 'rou_test', carrier_id: id, prefix: '', priority: 1, cost_minor: 0 }
    await w.state.db.insertInto('carrier_route').values(route).execute()
    const target = { id: 'tgt_test', carrier_id: id, sip_uri: uri, transport: 'udp' as const }
    await w.state.db
      .insertInto('carrier_target')
      .values({ ...target, priority: 1, weight: 1, enabled: 1 })
      .execute()
    await w.addTrunk('127.0.0.32')
    const peer = await openAgent(t, { ip: '127.0.0.32' })
    const { status, call } = await place(peer, `sip:${WORLD}@${w.sip.host}`, { to: w.sip, caller: w.numbers[3] ?? '' })
    t.equal(status, 200)
    const [challenged, answered] = registrar.invites.map(invite => invite.call.invite)
    t.equal(challenged?.get('proxy-authorization'), undefined)
    t.match(answered?.get('proxy-authorization'), /username="acme".*realm="carrier\.example"/)
    const verdict = await stir.verify(answered?.get('identity') ?? null, { caller: w.numbers[3] ?? '', called: WORLD })
    t.same(verdict, { result: 'passed', attest: 'A', detail: null })
    call.hangUp()
    // The next test counts the calls of the carrier.
    const running = w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null)
    await until('the call has ended', async () => (await running.execute()).length === 0)
  })

  t.test(
    'a drained carrier gets and brings no new call, its running call goes on, and resuming it ends that',
    async t => {
      const peer = await openAgent(t, { ip: '127.0.0.32' })
      const dialled = () => place(peer, `sip:${WORLD}@${w.sip.host}`, { to: w.sip, caller: w.numbers[3] ?? '' })
      const running = await dialled()
      t.equal(running.status, 200)
      const invites = registrar.invites.length
      const taken_back = registrar.taken_back()
      t.match(
        await strowger(w, ['carriers', 'drain', id, '--reason', 'maintenance']),
        /Telco \(draining, 1 call left\)/,
      )
      await until('the registration is gone', () => registrar.taken_back() > taken_back)
      t.not((await dialled()).status, 200, 'no new call to it')
      const carrier = { ua: registrar.ua, ip: REGISTRAR, port: registrar.port, invites: [] }
      const brought = await place(carrier, `sip:${w.numbers[2]}@${w.sip.host}`, { to: w.sip, caller: '+2348030001111' })
      t.equal(brought.status, 503, 'no new call from it')
      t.equal(brought.response?.get('retry-after'), '60')
      t.equal(registrar.invites.length, invites, 'nothing was sent to it')
      t.equal(running.call.state, 'answered', 'the running call goes on')
      running.call.hangUp()
      const left = async () => /Telco \(drained\)/.test(await strowger(w, ['carriers', 'list']))
      await until('no call is left', left)
      const accepted = registrar.accepted()
      t.notMatch(await strowger(w, ['carriers', 'resume', id]), /drain/)
      await until('it is registered again', () => registrar.accepted() > accepted)
      const again = await dialled()
      t.equal(again.status, 200)
      again.call.hangUp()
      const dayAt = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
      const figures = ['carriers', 'metrics', id, '--from', dayAt(-1), '--to', dayAt(1), '--json']
      // A call is answered before its row says so.
      const total = await until('the answer of the third call is kept', async () => {
        const { total } = JSON.parse(await strowger(w, figures))
        return total.answered === 3 && total
      })
      t.match(total, { asr_pct: 100, attempts: 3 })
      t.match(
        await strowger(w, ['carriers', 'test', id]),
        /passed {2}We are registered[\s\S]*passed: The carrier is set up well/,
      )
    },
  )

  t.test('the carrier sees a diversion only from a number of the caller’s project', async t => {
    const peer = await openAgent(t, { ip: '127.0.0.32' })
    const told = async (first: string) => {
      const headers = { Diversion: `<sip:${first}@pbx.example>;reason=unconditional` }
      const to = { to: w.sip, caller: w.numbers[3] ?? '', headers }
      const { status, call } = await place(peer, `sip:${WORLD}@${w.sip.host}`, to)
      t.equal(status, 200)
      call.hangUp()
      const { invite } = registrar.invites.at(-1)?.call ?? {}
      return ['diversion', 'history-info'].map(name => invite?.get(name)?.includes(first) ?? false)
    }
    t.same(await told(w.numbers[4] ?? ''), [true, true], 'its own')
    t.same(await told('+2348030009999'), [false, false], 'somebody else’s')
  })

  t.test('a caller who withholds the number stays hidden from the called party', async t => {
    const peer = await openAgent(t, { ip: '127.0.0.33' })
    const target = { sip_uri: `sip:${peer.ip}:${peer.port}`, transport: 'udp', priority: 1, weight: 1 }
    const trunk_id = await w.addTrunk(peer.ip, { targets: [target] })
    const [forwarding = '', delivered = ''] = w.numbers.slice(4)
    const document = `<Response><Dial><Number>${WORLD}</Number></Dial></Response>`
    const web = await webServer(t, { '/voice': document })
    await w.routeToApplication(forwarding, `${web.url}/voice`)
    await w.routeToTrunk(delivered, trunk_id)
    const [caller, diverting] = ['+2348030001111', '+2348030007777']
    const called = (number: string) => {
      const headers = {
        ...{ Privacy: 'id; history', 'P-Asserted-Identity': `<sip:${caller}@carrier.example>` },
        'History-Info': `<sip:${diverting}@carrier.example>;index=1, <sip:${number}@${REALM};cause=302>;index=1.1`,
      }
      const facts = { to: `<sip:${number}@${REALM}>`, from: '<sip:anonymous@anonymous.invalid>', headers }
      return registrar.calls(contact ?? '', facts)
    }
    const before = registrar.invites.length
    const first = called(forwarding)
    // The carrier challenges the first INVITE.
    const sent_on = (await until('the call is sent on', () => registrar.invites[before + 1])).call.invite
    t.match(sent_on?.get('from'), /^"Anonymous" <sip:anonymous@anonymous\.invalid>/)
    t.match(sent_on?.get('p-asserted-identity'), caller, 'the network is told, for its own use')
    t.equal(sent_on?.get('privacy'), 'id')
    first.hangUp()

    const second = called(delivered)
    const told = (await until('it is delivered', () => peer.invites.at(-1))).call.invite
    t.notMatch(told?.raw, '8030001111')
    t.notMatch(told?.raw, '8030007777', 'who diverted the call is hidden, too')
    t.match(told?.get('diversion'), /anonymous\.invalid>;reason=unconditional/)
    t.match(told?.get('from'), /^"Anonymous" <sip:anonymous@anonymous\.invalid>/)
    second.hangUp()
  })

  t.test('retries a carrier that refuses the registration, and the command shows the reason', async t => {
    registrar.refuses(403)
    await strowger(w, [...setUp.slice(0, -1), '3600'], PASSWORD)
    const text = await until('the refusal is known', async () => {
      const printed = await strowger(w, ['carriers', 'list'])
      return /failed \(403 [^)]*\), next try/.test(printed) && printed
    })
    t.match(text, /failed \(403 Forbidden\)/)
    registrar.refuses(null)
    const accepted = registrar.accepted()
    await strowger(w, [...setUp], PASSWORD)
    await until('it is registered', () => registrar.accepted() > accepted)
    t.pass('set again')
    const [taken_back, renewed] = [registrar.taken_back(), registrar.accepted()]
    await strowger(w, ['carriers', 'disable', id])
    // A node that reads only what is enabled again keeps its registration.
    await until('it is taken back', () => registrar.taken_back() > taken_back)
    await strowger(w, ['carriers', 'enable', id])
    await until('it is registered again', () => registrar.accepted() > renewed)
  })

  t.test(...onEmbedded('a registrar over TLS must present a valid certificate, or the pinned one'), async t => {
    const certificate = await testTls()
    const secure = await openRegistrar(t, certificate)
    const fingerprint = new X509Certificate(certificate.cert).fingerprint256
    const other = (await strowger(w, ['carriers', 'add', 'Secure', '--source', '127.0.0.33/32'])).trim()
    const pinned = ['--tls-verification', 'pinned', '--tls-fingerprint']
    const called = ['--target', 'sip:127.0.0.33:9', '--transport', 'tls', ...pinned, fingerprint]
    await strowger(w, ['carriers', 'add', 'Called', '--source', '127.0.0.34/32', ...called])
    const by = `sip:${REGISTRAR}:${secure.port}`
    const wish = ['carriers', 'register', other, '--registrar', by, '--username', 'acme', '--transport', 'tls']
    const says = (text: RegExp) =>
      until(`the command says ${text}`, async () => text.test(await strowger(w, ['carriers', 'list'])))
    await says(/to {5}sip:127\.0\.0\.33:9 tls priority 1 certificate [0-9a-f]{64}\n/)
    await strowger(w, wish, PASSWORD)
    await says(
      /acme at sip:127\.0\.0\.31:\d+: failed \(The certificate of 127\.0\.0\.31 .* does not name 127\.0\.0\.31/,
    )
    t.match(
      await strowger(w, [...wish, ...pinned.slice(0, 2)], 'x').catch(String),
      /\/tls_fingerprint must be the SHA-256 fingerprint/,
    )
    t.match(
      await strowger(w, [...wish, ...pinned.slice(2), fingerprint], 'x').catch(String),
      /\/tls_fingerprint needs tls_verification pinned/,
    )
    t.match(await strowger(w, [...wish, ...pinned, 'ab:cd'], 'x').catch(String), /64 hexadecimal digits/)
    await strowger(w, [...wish, ...pinned, '0'.repeat(64)], PASSWORD)
    await says(/acme at \S+ certificate 0{64}: failed \(127\.0\.0\.31 shows a certificate .* not the pinned one/)
    t.equal(secure.heard(), 0, 'nothing is sent to a registrar that does not prove itself')
    await strowger(w, [...wish, ...pinned, fingerprint], PASSWORD)
    await says(/acme at \S+ certificate [0-9a-f]{64}: registered until 2/)
    await strowger(w, [...wish, '--tls-verification', 'off'], PASSWORD)
    await says(/acme at \S+ certificate not verified: registered until 2/)
    // The row says "registered" of the earlier binding until the platform takes that back and makes the next one.
    await until('it is bound', () => secure.bound().size === 1)
    t.match([...secure.bound()], [/;transport=tls$/])
    await strowger(w, ['carriers', 'remove', other])
    await until('it is taken back', () => secure.bound().size === 0)
    t.pass('by the certificate that counted for it')
  })

  t.test('unregisters when the registration is ended', async t => {
    await until('bound', () => registrar.bound().size === 1)
    await strowger(w, ['carriers', 'unregister', id])
    await until('it is taken back', () => registrar.bound().size === 0)
    t.notMatch(await strowger(w, ['carriers', 'list']), /register acme/)
    await strowger(w, setUp, PASSWORD)
    await until('bound again', () => registrar.bound().size === 1)
    const taken_back = registrar.taken_back()
    process.kill(w.pid('signaling'), 'SIGTERM')
    await until('a node that stops takes it back', () => registrar.taken_back() > taken_back)
    await until('its successor registers', () => registrar.bound().size === 1)
    t.pass('as before')
  })
})

const strowger = (w: World, args: readonly string[], input = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'] ?? '', ...w.place }
    const child = execFile('bin/strowger', args, { env }, (error, stdout, stderr) =>
      error ? reject(new Error(`${stderr}${stdout}`)) : resolve(stdout),
    )
    child.stdin?.end(input)
  })

const lastCall = (w: World) =>
  w.state.db.selectFrom('call').selectAll().orderBy('position', 'desc').executeTakeFirstOrThrow()

async function openRegistrar(t: Test, tls?: TlsOptions) {
  const invites: { call: UserAgentCall }[] = []
  const bindings = new Set<string>()
  let granted = 60
  let refusing: number | null = null
  let [accepted, taken, heard] = [0, 0, 0]
  const nonce = 'abcdef0123456789'
  /** The requests that were challenged, as they must come again (RFC 3261 §22.2). */
  const expected_again = new Set<string>()
  const answerTo = ({ message }: IncomingRequest): [number, Record<string, string>?] => {
    if (message.method !== 'REGISTER') return [message.method === 'OPTIONS' ? 200 : 405]
    const given = message.get('authorization')
    const { call_id, from_tag, cseq } = message
    if (given === undefined) {
      expected_again.add(`${call_id} ${from_tag} ${cseq.seq + 1}`)
      return [401, { 'WWW-Authenticate': `Digest realm="${REALM}", nonce="${nonce}", qop="auth"` }]
    }
    if (!expected_again.delete(`${call_id} ${from_tag} ${cseq.seq}`)) return [403]
    if (refusing !== null) return [refusing]
    const { uri } = message
    const cnonce = /cnonce="([^"]+)"/.exec(given)?.[1] ?? ''
    const facts = { username: 'acme', password: PASSWORD, realm: REALM, nonce, nc: '00000001', uri, cnonce }
    const expected = digestAnswer({ ...facts, algorithm: 'MD5', method: 'REGISTER' })
    const response = (text: string) => /response="([0-9a-f]{32})"/.exec(text)?.[1]
    if (response(given) !== response(expected)) return [403]
    const contact = /<([^>]+)>/.exec(message.lines('contact')[0] ?? '')?.[1] ?? ''
    if (message.get('expires') === '0') {
      bindings.delete(contact)
      taken++
      return [200]
    }
    bindings.add(contact)
    accepted++
    return [200, { Contact: `<${contact}>;expires=${granted}` }]
  }
  const take = (request: IncomingRequest): void => {
    heard++
    const [status, headers = {}] = answerTo(request)
    request.answer(status, { headers })
  }
  const ua = await UserAgent.open({
    listeners: [{ protocol: tls ? 'tls' : 'udp', host: REGISTRAR, port: 0 }],
    ...(tls ? { tls } : {}),
    request: take,
    incoming(call) {
      invites.push({ call })
      const challenge = { 'Proxy-Authenticate': `Digest realm="${REALM}", nonce="${nonce}", qop="auth"` }
      if (call.invite?.get('proxy-authorization') === undefined) call.reject(407, { headers: challenge })
      else call.answer({ body: sdpOf(REGISTRAR) })
    },
  })
  t.teardown(() => ua.close())
  return {
    ua,
    invites,
    /** Calls us, and calls again while the platform is too busy to decide. */
    calls(uri: string, facts: { to: string; from: string; headers: Readonly<Record<string, string>> }) {
      let current = callUntilDecided(ua, uri, { ...facts, body: sdpOf(REGISTRAR) }, call => {
        current = call
      })
      return { hangUp: () => current.hangUp() }
    },
    port: ua.port(tls ? 'tls' : 'udp'),
    bound: (): ReadonlySet<string> => bindings,
    accepted: () => accepted,
    taken_back: () => taken,
    heard: () => heard,
    grants: (seconds: number) => {
      granted = seconds
    },
    refuses: (code: number | null) => {
      refusing = code
    },
  }
}
