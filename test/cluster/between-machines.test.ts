import { randomUUID, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { connect } from 'node:tls'
import { recordingFiles } from '../../control/reconcilers/recordings.ts'
import { connectBus } from '../../core/runtime/bus.ts'
import { loadConfig } from '../../core/runtime/config.ts'
import { createLog } from '../../core/runtime/log.ts'
import { acmeAuthority } from '../support/acme-authority.ts'
import { tone } from '../support/audio.ts'
import { sidOf } from '../support/busy.ts'
import { ConnectedPhone } from '../support/connected-phone.ts'
import t from '../support/harness/index.ts'
import { digestAnswer, openPhone } from '../support/phone.ts'
import { freePort, linkedAt } from '../support/ports.ts'
import { postgresDatabase } from '../support/postgres.ts'
import { recordsSound } from '../support/recordings.ts'
import { requested } from '../support/requested.ts'
import { openRtpPeer } from '../support/rtp-peer.ts'
import { type Line, openSoftphone } from '../support/softphone.ts'
import { addTenant } from '../support/tenants.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { type World, world } from '../support/world.ts'

// Two machines share one PostgreSQL, and their edges are linked. A telephone registers at one and is called by the
// other; callers of both machines meet in one conference and one queue; the files of one are read by the API of the
// other.

const CALLED = '+2348030004711'

/** Runs once what removes the files of deleted recordings on a machine. */
async function keeperOf({ settings: env, state }: World): Promise<void> {
  const settings = loadConfig(env)
  const [log, bus] = [createLog('control', { log_level: 'silent' }), connectBus(settings.run_dir)]
  await recordingFiles.run({ state, settings, log, bus, clock: state.clock, objects: null })
  await bus.close()
}

/** Waits until all machines show the same certificate at their SIP port over TLS, another one than `but`. */
const servedByAll = (machines: readonly World[], but = ''): Promise<string> =>
  until('all machines serve the same certificate', async () => {
    const [first = '', ...others] = await Promise.all(machines.map(serialAt))
    return first !== '' && first !== but && others.every(serial => serial === first) && first
  })

const serialAt = ({ sip }: World): Promise<string> =>
  new Promise(resolve => {
    const socket = connect({ host: sip.host, port: sip.tls_port, rejectUnauthorized: false })
    socket.once('secureConnect', () => {
      resolve(new X509Certificate(socket.getPeerCertificate(true).raw).serialNumber)
      socket.destroy()
    })
    socket.once('error', () => resolve(''))
  })

/** Answers the challenge of a REGISTER at a machine. */
function answerTo(
  { headers }: { readonly headers: readonly string[] },
  secrets: { readonly username: string; readonly password: string },
  { sip }: World,
): string {
  const challenge = headers.find(line => /^www-authenticate:/i.test(line)) ?? ''
  const said = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1] ?? ''
  const facts = { algorithm: 'SHA-256', method: 'REGISTER', uri: `sip:${sip.host}:${sip.port}` } as const
  return digestAnswer({ ...secrets, ...facts, realm: said('realm'), nonce: said('nonce'), nc: '00000001' })
}

t.test('what crosses machines', async t => {
  // Clients are challenged for one domain, whichever machine they ask.
  const http_port = await freePort()
  const authority = await acmeAuthority(t, { address: '127.0.0.2', http_port, tls_port: http_port })
  const trusted = join(t.testdir(), 'authority.pem')
  writeFileSync(trusted, authority.ca)
  const settings = {
    ...{ STROWGER_SANDBOX: 'off', STROWGER_DOMAIN: 'cluster.test', NODE_EXTRA_CA_CERTS: trusted },
    ...{ STROWGER_ACME_NAMES: 'voice.cluster.test', STROWGER_ACME_HTTP_PORT: `${http_port}` },
    STROWGER_ACME_URL: authority.directory,
  }
  const database = await postgresDatabase()
  const a = await world(t, { ...settings, ...(await linkedAt('127.0.0.2')), STROWGER_DATABASE_URL: database })
  const b = await world(t, { ...settings, ...(await linkedAt('127.0.0.3')) }, a)
  const { db } = a.state
  const [own = '', application = '', ...registered] = a.numbers
  const desk = await openSoftphone(t, '127.0.0.84')
  const far_end = await openSoftphone(t, '127.0.0.85')
  /** The document of each caller. */
  const documents = new Map<string, string>()
  const web = await webServer(t, {
    '/voice': ({ fields }) => documents.get(fields.get('From') ?? '') ?? '<Response><Reject/></Response>',
    ...Object.fromEntries(['/room', '/queue', '/agent'].map(path => [path, { status: 204 }])),
    '/done': '<Response><Hangup/></Response>',
  })
  const target = { sip_uri: `sip:${far_end.address}:${far_end.port}`, transport: 'udp', priority: 1, weight: 1 }
  const connected = await Promise.all(
    (['tcp', 'ws', 'udp'] as const).map(async (protocol, index) => {
      const { id, ...secrets } = await a.addDigestTrunk()
      const number = registered[index] ?? ''
      await a.routeToTrunk(number, id)
      return { protocol, number, secrets }
    }),
  )
  await a.routeToApplication(application, `${web.url}/voice`)
  // Both machines have applied it, and what was changed before.
  await a.addTrunk(desk.address, { targets: [target] })
  const running = () => db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
  const nobody = () => until('all calls have ended', async () => (await running()).length === 0)
  const extended = () => db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
  await extended()
  let someone = 0
  /** Calls an application at one machine, which runs the document. Resolves when the call is answered. */
  const call = async (w: World, verbs: string, phone = desk, number = application) => {
    const from = `+23480300${30_000 + someone++}`
    documents.set(from, `<Response>${verbs}</Response>`)
    const line = await phone.dial(`sip:${number}@${w.sip.host}:${w.sip.port}`, { from })
    await line.answered()
    return { line, sid: await sidOf(db, line) }
  }
  const hears = async (line: Line, hz: number): Promise<void> => {
    line.rtp.received.length = 0
    await line.hears(hz)
  }
  const silent = (line: Line, hz: number) => line.rtp.until(() => line.level(hz) < -40, PATIENCE_MS, `no ${hz} Hz`)

  t.test('a telephone registers at one machine, and the other one calls it', async t => {
    for (const { protocol, number, secrets } of connected) {
      if (protocol === 'udp') continue
      const port = protocol === 'tcp' ? a.sip.port : a.sip.ws_port
      const phone = await ConnectedPhone.open(t, protocol, { host: a.sip.host, port, from: '127.0.0.86' })
      await phone.register(a.sip.host, secrets)
      const rings = () => phone.arrived.some(({ text }) => text.startsWith('INVITE '))
      // The other machine refuses the call until it has learnt of the registration.
      const near = await until('the telephone is called', async () => {
        const line = await desk.dial(`sip:${number}@${b.sip.host}:${b.sip.port}`, { from: own })
        await until('it is called, or the caller is refused', () => rings() || line.final !== null)
        return rings() && line
      })
      const invite = await phone.request('INVITE')
      phone.answer(invite, '180 Ringing')
      await until(`it rings over ${protocol}`, () => near.progress.includes(180))
      if (protocol === 'ws') {
        phone.answer(invite, '486 Busy Here')
        await until('the caller is told', () => near.final === 486)
        continue
      }
      const rtp = await openRtpPeer({ address: '127.0.0.86', codec: 'PCMU', event_payload_type: 101 })
      t.teardown(() => rtp.close())
      phone.answer(invite, '200 OK', rtp.sdp({ address: '127.0.0.86' }))
      await near.answered()
      near.hum(440)
      const sdp = invite.text
      rtp.sendTo(Number(/^m=audio (\d+)/m.exec(sdp)?.[1]), /^c=IN IP4 (\S+)/m.exec(sdp)?.[1] ?? '')
      await rtp.hears(440)
      near.hangUp()
      const bye = await phone.request('BYE')
      phone.answer(bye, '200 OK')
    }
    await nobody()
  })

  t.test('a digest nonce of one machine is good at the other, once', async t => {
    const { username = '', password = '' } = connected.find(({ protocol }) => protocol === 'udp')?.secrets ?? {}
    const at = { host: a.sip.host, port: a.sip.port, local_ip: '127.0.0.87' }
    const phone = await openPhone(t, at)
    const contact = `sip:${username}@127.0.0.87:${5060}`
    const challenged = await until('it is challenged', async () => {
      const answer = await phone.register({ cseq: 1, contact })
      return answer.status === 401 && answer
    })
    const authorization = answerTo(challenged, { username, password }, b)
    Object.assign(at, { host: b.sip.host, port: b.sip.port })
    t.equal((await phone.register({ cseq: 2, contact, authorization })).status, 200, 'the other machine takes it')
    Object.assign(at, { host: a.sip.host, port: a.sip.port })
    const again = await phone.register({ cseq: 3, contact, authorization })
    t.equal(again.status, 401, 'an answer that was heard on the wire is refused where it came from')
  })

  t.test('who guesses passwords at one machine is shut out of both, and customers are not', async t => {
    const secrets = connected.find(({ protocol }) => protocol === 'udp')?.secrets ?? { username: '', password: '' }
    const contact = `sip:${secrets.username}@127.0.0.95:${5060}`
    /** A telephone at one machine after the other, each time with a registration. */
    const telephone = async (local_ip: string) => {
      const at = { host: a.sip.host, port: a.sip.port, local_ip }
      const phone = await openPhone(t, at)
      let cseq = 1
      const challengedBy = (w: World) => {
        Object.assign(at, { host: w.sip.host, port: w.sip.port })
        return phone.register({ cseq: cseq++, contact })
      }
      const registers = async (w: World, password: string): Promise<number> => {
        const challenged = await challengedBy(w)
        const authorization = answerTo(challenged, { ...secrets, password }, w)
        return (await phone.register({ cseq: cseq++, contact, authorization })).status
      }
      return { challengedBy, registers }
    }
    // Behind the same address as the stranger, and elsewhere.
    const [neighbour, customer] = [await telephone('127.0.0.95'), await telephone('127.0.0.96')]
    t.equal(await neighbour.registers(a, secrets.password), 200)
    const stranger = await telephone('127.0.0.95')
    for (let tries = 0; tries < 5; tries++) t.equal(await stranger.registers(a, 'a guess'), 401)
    for (const w of [a, b])
      await until('the door is shut', async () => (await w.metrics())('edge_blocked_sources') === 1)
    let heard = false
    void stranger.challengedBy(b).then(() => {
      heard = true
    })
    t.equal(await neighbour.registers(b, secrets.password), 200, 'the flow of a customer behind the same address')
    t.equal(await customer.registers(b, secrets.password), 200, 'another customer')
    t.equal(heard, false, 'the other machine does not answer the stranger')
  })

  t.test('an address that guesses keys has one limit on both machines, and customers pass', async t => {
    const began_ms = performance.now()
    const told = () => [a, b].map(w => w.log().split('each machine counts alone').length)
    const before = told()
    const guess = async (w: World): Promise<number> => {
      const headers = { Authorization: `Bearer ${randomUUID()}` }
      return (await requested(`${w.base_url}/v1/calls`, { method: 'GET', headers })).status
    }
    const found = await Promise.all([a, b].flatMap(w => Array.from({ length: 150 }, () => guess(w))))
    const judged = found.filter(status => status === 401).length
    t.equal(found.filter(status => status === 429).length, found.length - judged)
    // One more may be tried each second. A machine may hold five that the other one would have needed.
    const refilled = Math.ceil((performance.now() - began_ms) / 1000)
    // One that does not reach the database for a second counts alone, as its log says.
    const alone = told().filter((times, at) => times !== before[at]).length
    const most = 100 * (1 + alone) + refilled
    t.ok(judged >= 90 && judged <= most, `${judged} of ${found.length} guesses were judged`)
    for (const w of [a, b]) t.equal((await w.manage('GET', '/calls')).status, 200)
  })

  t.test('a re-INVITE and a BYE at the wrong edge reach the call', async t => {
    await a.addTrunk('127.0.0.88', { targets: [target] })
    const at = { host: b.sip.host, port: b.sip.port, local_ip: '127.0.0.88' }
    const phone = await openPhone(t, at)
    const answered = phone.invite({ called: CALLED, caller: own, cseq: 1 })
    const far = await far_end.incoming(CALLED)
    await far.answer()
    t.equal((await answered).status, 200)
    Object.assign(at, { host: a.sip.host, port: a.sip.port })
    t.equal((await phone.reinvite(2)).status, 200, 'the re-INVITE')
    t.equal(far.ended, null)
    t.equal((await phone.bye(3)).status, 200, 'the BYE')
    await far.over()
    await nobody()
  })

  t.test('callers of both machines are in one conference', async t => {
    const room = `<Dial action="${web.url}/done"><Conference beep="false" statusCallback="${web.url}/room" statusCallbackEvent="start end join leave mute hold">across</Conference></Dial>`
    const first = await call(a, room)
    const second = await call(b, room)
    const third = await call(b, room)
    first.line.hum(440)
    second.line.hum(880)
    third.line.hum(1320)
    await Promise.all([hears(first.line, 880), hears(first.line, 1320), hears(second.line, 440)])
    await Promise.all([hears(second.line, 1320), hears(third.line, 440), hears(third.line, 880)])
    const conferences = async (w: World) => {
      const { body } = await w.voice('GET', '/Conferences.json?FriendlyName=across&Status=in-progress')
      return body.conferences as { sid: string }[]
    }
    // They hear each other before the rows say so.
    const sid = await until('the conference has begun', async () => (await conferences(b))[0]?.sid)
    t.equal((await conferences(b)).length, 1, 'there is one conference')
    for (const w of [a, b]) {
      const listed = await until('all of them are listed', async () => {
        const { body } = await w.voice('GET', `/Conferences/${sid}/Participants.json`)
        return body.participants.length >= 3 && body.participants
      })
      const sids = listed.map(({ call_sid }: { call_sid: string }) => call_sid).sort()
      t.same(sids, [first, second, third].map(one => one.sid).sort(), 'each API lists all of them')
    }

    const change = (w: World, who: string, form: Record<string, string>) =>
      w.voice('POST', `/Conferences/${sid}/Participants/${who}.json`, form)
    t.match(await change(a, second.sid, { Muted: 'true' }), { status: 200, body: { muted: true } })
    await Promise.all([silent(first.line, 880), silent(third.line, 880)])
    await hears(second.line, 440)
    t.match(await change(b, second.sid, { Muted: 'false' }), { status: 200, body: { muted: false } })
    await hears(first.line, 880)
    t.match(await change(b, first.sid, { Hold: 'true' }), { status: 200, body: { hold: true } })
    await silent(second.line, 440)
    await change(a, first.sid, { Hold: 'false' })
    await hears(second.line, 440)
    t.match(await change(a, third.sid, { Hold: 'true' }), { status: 200 })
    await Promise.all([silent(first.line, 1320), silent(third.line, 440)])
    await third.line.hearsSomething(440)
    t.equal((await b.voice('DELETE', `/Conferences/${sid}/Participants/${third.sid}.json`)).status, 204)
    t.equal(await third.line.over(), 'peer', 'who is taken out goes on with its document')

    const rival = await addTenant(a.state, a.master_key, ['+2342019990001'])
    await extended()
    const theirs = a.as({ ...rival })
    const stranger = await openSoftphone(t, '127.0.0.89')
    await a.routeToApplication('+2342019990001', `${web.url}/voice`, rival.project_id)
    await theirs.addTrunk(stranger.address)
    const alone = await call(b, room, stranger, '+2342019990001')
    alone.line.hum(1760)
    await until('they have a conference of their own', async () => {
      const { body } = await theirs.voice('GET', '/Conferences.json?FriendlyName=across&Status=init')
      return body.conferences.length === 1
    })
    t.ok(first.line.level(1760) < -40, 'the same name of another customer is another conference')
    alone.line.hangUp()

    second.line.hangUp()
    await until('it has left', async () => {
      const { body } = await a.voice('GET', `/Conferences/${sid}/Participants.json`)
      return body.participants.length === 1
    })
    first.line.hangUp()
    await nobody()
    const events = () =>
      web.requests
        .filter(({ path, fields }) => path === '/room' && fields.get('ConferenceSid') === sid)
        .map(({ fields }) => fields.get('StatusCallbackEvent'))
    await until('its end is told', () => events().includes('conference-end'))
    t.equal(events().filter(event => event === 'participant-join').length, 3)
    t.equal(events().filter(event => event === 'participant-leave').length, 3)
  })

  t.test('a caller who waits at one machine is served by an agent at the other', async t => {
    const queue = `<Enqueue action="${web.url}/done" waitUrl="${web.url}/wait">across</Enqueue>`
    const agent = `<Dial action="${web.url}/done"><Queue>across</Queue></Dial>`
    for (const [waits, serves] of [
      [a, b],
      [b, a],
    ] as const) {
      const caller = await call(waits, queue)
      await until('it waits', async () => {
        const { body } = await serves.voice('GET', '/Queues.json')
        const [found] = body.queues.filter((one: { friendly_name: string }) => one.friendly_name === 'across')
        return found?.current_size === 1
      })
      const served = await call(serves, agent)
      caller.line.hum(440)
      served.line.hum(880)
      await Promise.all([hears(caller.line, 880), hears(served.line, 440)])
      if (serves === b) served.line.hangUp()
      else caller.line.hangUp()
      await Promise.all([caller.line.over(), served.line.over()])
      await nobody()
    }
    const first = await call(b, agent)
    const caller = await call(a, queue)
    caller.line.hum(440)
    await hears(first.line, 440)
    t.pass('an agent who comes first gets the caller of the other machine')
    caller.line.hangUp()
    await first.line.over()
    await nobody()
  })

  t.test('the API of each machine reads the recordings of both', async t => {
    const record = `<Record playBeep="false" trim="do-not-trim" timeout="60" action="${web.url}/done"/>`
    const { line, sid: call_sid } = await call(a, record)
    const sid = await until('the recording runs', async () => {
      const row = db.selectFrom('recording').select('sid').where('call_sid', '=', call_sid)
      return (await row.executeTakeFirst())?.sid
    })
    await line.rtp.sendUntil(tone(700, PATIENCE_MS), recordsSound(a, call_sid))
    line.hangUp()
    const row = db.selectFrom('recording').select(['status', 'file', 'machine_id']).where('sid', '=', sid)
    const completed = async () => (await row.executeTakeFirstOrThrow()).status === 'completed'
    await until('the recording is complete', completed)
    const [here, there] = [
      await a.voice('GET', `/Recordings/${sid}.wav`),
      await b.voice('GET', `/Recordings/${sid}.wav`),
    ]
    t.equal(there.status, 200)
    t.ok(there.bytes.length > 1000 && there.bytes.equals(here.bytes), 'before it is encrypted')
    await until('it is encrypted', async () => (await row.executeTakeFirstOrThrow()).file.endsWith('.sealed'))
    const sealed = await b.voice('GET', `/Recordings/${sid}.wav`)
    t.ok(sealed.bytes.equals(here.bytes), 'and afterwards')
    const heard = await call(
      b,
      `<Play loop="0">${b.base_url}/2010-04-01/Accounts/${b.account_sid}/Recordings/${sid}.wav</Play>`,
    )
    await heard.line.hears(700)
    t.pass('a call of the other machine plays it')
    heard.line.hangUp()

    const rival = await addTenant(a.state, a.master_key, [], 'Nosy')
    t.equal((await b.as({ ...rival }).voice('GET', `/Recordings/${sid}.wav`)).status, 404, 'another customer')
    const { file } = await row.executeTakeFirstOrThrow()
    const [there_too, its_file] = [join(b.data_dir, file), join(a.data_dir, file)]
    await a.kill('control', async () => {
      const refused = await b.voice('GET', `/Recordings/${sid}.wav`)
      t.equal(refused.status, 503)
      t.match(JSON.stringify(refused.body), /the machine at 127\.0\.0\.2, which has the file, does not answer/)
      t.equal((await b.voice('DELETE', `/Recordings/${sid}.json`)).status, 204)
      mkdirSync(dirname(there_too), { recursive: true })
      writeFileSync(there_too, 'of another machine')
      await keeperOf(b)
      t.equal((await row.executeTakeFirstOrThrow()).file, file, 'the keeper of the other machine leaves it')
      t.ok(existsSync(its_file))
    })
    await until('the machine that has it removes it', async () => (await row.executeTakeFirstOrThrow()).file === '')
    t.notOk(existsSync(its_file))
    t.ok(existsSync(there_too), 'and only there')
    await nobody()
  })

  t.test('a certificate is ordered once, serves on both machines, and either shows the proof of the other', async t => {
    const of_names = db.selectFrom('acme_certificate').select(['pem', 'ordered_by'])
    const issued = () =>
      until('the certificate is issued', async () => {
        const found = await of_names.executeTakeFirst()
        return found !== undefined && found.pem !== '' && found
      })
    const before = await issued()
    const own_id = readFileSync(join(a.data_dir, 'machine.id'), 'utf8').trim()
    t.equal(before.ordered_by, own_id, 'the one that started first')
    const first = await servedByAll([a, b])
    // From now on the authority asks the other machine, and only a process that has just started orders at once.
    await authority.leadTo(b.sip.host)
    const failed_at = new Date().toISOString()
    await db.updateTable('acme_certificate').set({ pem: '', failed_at }).execute()
    await a.kill('control')
    const after = await issued()
    t.equal(after.ordered_by, own_id)
    t.not(await servedByAll([a, b], first), first)
  })

  t.test('who visits a conference finds it again when the machine that kept it is lost', async t => {
    const room = '<Dial><Conference beep="false">lost</Conference></Dial>'
    const keeper = await call(a, room)
    const [one, two] = [await call(b, room), await call(b, room)]
    keeper.line.hum(440)
    one.line.hum(880)
    two.line.hum(1320)
    await Promise.all([hears(one.line, 440), hears(two.line, 880), hears(keeper.line, 1320)])
    await a.kill('signaling')
    await keeper.line.over()
    await Promise.all([hears(one.line, 1320), hears(two.line, 880)])
    t.same([one.line.ended, two.line.ended], [null, null])
    for (const { line } of [one, two]) line.hangUp()
    await nobody()
  })
})
