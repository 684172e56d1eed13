import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { reply } from '../conformance/edge/peer.ts'
import { tone } from '../support/audio.ts'
import { sidOf } from '../support/busy.ts'
import { runCommand } from '../support/command-line.ts'
import { ConnectedPhone } from '../support/connected-phone.ts'
import t from '../support/harness/index.ts'
import { linkedAt } from '../support/ports.ts'
import { postgresDatabase } from '../support/postgres.ts'
import { recordsSound } from '../support/recordings.ts'
import { requested } from '../support/requested.ts'
import { openSoftphone } from '../support/softphone.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { type World, world } from '../support/world.ts'

// Three machines share the work: one speaks SIP with peers, one runs the calls and their sound, one serves the APIs.

const CALLED = '+2348030004711'

t.test('an edge, a machine for calls and a machine for the APIs are one platform', async t => {
  const settings = { STROWGER_SANDBOX: 'off', STROWGER_DOMAIN: 'cluster.test' }
  const database = await postgresDatabase()
  const at = async (host: string, roles: string) => ({
    ...{ ...settings, ...(await linkedAt(host)), STROWGER_ROLES: roles },
  })
  const control = await world(t, { ...(await at('127.0.0.4', 'control')), STROWGER_DATABASE_URL: database })
  const edge = await world(t, await at('127.0.0.2', 'edge'), control)
  const calls = await world(t, await at('127.0.0.3', 'signaling media'), control)
  const { db } = control.state
  const [own = '', application = '', registered = '', third = ''] = control.numbers
  const desk = await openSoftphone(t, '127.0.0.91')
  const far_end = await openSoftphone(t, '127.0.0.92')
  const target = { sip_uri: `sip:${far_end.address}:${far_end.port}`, transport: 'udp', priority: 1, weight: 1 }
  const digest = await control.addDigestTrunk()
  await control.routeToTrunk(registered, digest.id)
  const web = await webServer(t, {
    '/voice': '<Response><Record playBeep="false" trim="do-not-trim" timeout="60" action="/done"/></Response>',
    '/done': '<Response><Hangup/></Response>',
  })
  await control.routeToApplication(application, `${web.url}/voice`)
  await control.addTrunk(desk.address, { targets: [target] })
  const dial = (called: string) => desk.dial(`sip:${called}@${edge.sip.host}:${edge.sip.port}`, { from: own })
  const nobody = () =>
    until(
      'all calls have ended',
      async () => (await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()).length === 0,
    )

  t.test('each says what it does, and whether it does so', async t => {
    const ready = (w: World) => requested(`${w.base_url}/readyz/machine`, { method: 'GET' })
    for (const w of [control, edge, calls])
      await until(`${w.base_url} is ready`, async () => (await ready(w)).status === 200)
    const env = { ...control.place, STROWGER_HOST: '127.0.0.4', STROWGER_ROLES: 'control' }
    const { stdout, code } = await runCommand(['cluster', 'status', '--json'], { env, state: control.state })
    const shown: { host: string; state: string; roles: string[]; processes: string[] }[] = JSON.parse(stdout)
    t.same(
      shown.map(({ host, state, roles, processes }) => [host, state, ...roles, '/', ...processes].join(' ')).sort(),
      [
        '127.0.0.2 running edge / control edge',
        '127.0.0.3 running signaling media / control edge media signaling',
        '127.0.0.4 running control / control',
      ],
    )
    t.equal(code, 0)
    for (const w of [control, edge, calls]) {
      const { stdout: examined } = await runCommand(['doctor', '--json'], { env: w.settings, state: w.state })
      const { findings } = JSON.parse(examined) as { findings: { what: string; ok: boolean; mend: string }[] }
      const said = findings.map(({ what }) => what)
      t.same(
        findings.filter(({ ok }) => !ok).map(({ what, mend }) => `${what}: ${mend}`),
        [],
      )
      t.ok(said.includes('the 3 machines that share the database run'), said.join())
      t.equal(said.includes('espeak-ng speaks'), w === calls, 'speech is of the machine that runs calls')
    }
    for (const w of [edge, calls])
      t.equal((await w.manage('GET', '/trunks')).status, 404, 'the APIs are those of the machine with control')
    const { body } = await control.manage('GET', '/platform/endpoints')
    t.same(body.signaling_nodes, ['127.0.0.2'], 'peers send SIP to the edge')
    t.same(body.media_anchors, ['127.0.0.3'], 'and sound to the machine with media')
    const chain = async () => (await control.manage('GET', '/platform/endpoints')).body.tls.trust_chain as string[]
    await until('peers are told what certificate the edge has', async () => (await chain()).length > 0)
  })

  t.test('a call has sound both ways, outlives the process of the edge, and is recorded in the rows', async t => {
    const near = await dial(CALLED)
    const far = await far_end.incoming(CALLED)
    await far.answer()
    await near.answered()
    near.hum(440)
    far.hum(880)
    await Promise.all([near.hears(880), far.hears(440)])
    t.match(far.header('contact') ?? '', `${edge.sip.host}:${edge.sip.port}`, 'the called side sees the edge')
    const sid = await sidOf(db, near)
    await edge.kill('edge')
    for (const line of [near, far]) line.rtp.received.length = 0
    await Promise.all([near.hears(880), far.hears(440)])
    t.same([near.ended, far.ended], [null, null], 'the edge keeps nothing about a call')
    far.hangUp()
    await near.over()
    t.match(await control.ended(sid), { status: 'completed' })
    const cdr = db.selectFrom('cdr').select(['status', 'reason']).where('call_sid', '=', sid)
    t.same(await cdr.execute(), [{ status: 'completed', reason: null }])
  })

  t.test('a caller who gives up is followed', async () => {
    const near = await dial(CALLED)
    const far = await far_end.incoming(CALLED)
    far.ring()
    await until('it rings', () => near.progress.includes(180))
    near.hangUp()
    await far.over()
    await nobody()
  })

  t.test('a telephone that registers over TCP is called by its connection', async t => {
    const phone = await ConnectedPhone.open(t, 'tcp', { host: edge.sip.host, port: edge.sip.port, from: '127.0.0.93' })
    await phone.register(edge.sip.host, digest)
    const near = await dial(registered)
    const invite = await phone.request('INVITE')
    phone.answer(invite, '486 Busy Here')
    await until('the caller is told', () => near.final === 486)
    await nobody()
  })

  t.test('a target over TCP is called by the edge', async t => {
    const server = createServer()
    t.teardown(() => server.close())
    const callers: (string | undefined)[] = []
    server.on('connection', socket => {
      callers.push(socket.remoteAddress)
      socket.on('error', () => undefined)
      socket.on('data', data => {
        if (data.includes('INVITE sip:')) socket.write(reply(String(data), 486, 'busy', '', 5060))
      })
    })
    await once(server.listen(0, '127.0.0.94'), 'listening')
    const { port } = server.address() as AddressInfo
    const over_tcp = { sip_uri: `sip:127.0.0.94:${port}`, transport: 'tcp', priority: 1, weight: 1 }
    await control.routeToTrunk(third, await control.addTrunk('127.0.0.94', { targets: [over_tcp] }))
    const near = await dial(third)
    await until('the caller is told', () => near.final === 486)
    t.same([...new Set(callers)], ['127.0.0.2'], 'the target sees the address of the edge')
    await nobody()
  })

  t.test('the machine with the APIs reads what the call has left elsewhere', async t => {
    const line = await dial(application)
    await line.answered()
    const sid = await sidOf(db, line)
    const recording = await until('the recording runs', async () => {
      const row = db.selectFrom('recording').select('sid').where('call_sid', '=', sid)
      return (await row.executeTakeFirst())?.sid
    })
    await line.rtp.sendUntil(tone(700, PATIENCE_MS), recordsSound(calls, sid))
    line.hangUp()
    await until('the recording is complete', async () => {
      const row = db.selectFrom('recording').select('status').where('sid', '=', recording)
      return (await row.executeTakeFirstOrThrow()).status === 'completed'
    })
    const { status, bytes } = await control.voice('GET', `/Recordings/${recording}.wav`)
    t.equal(status, 200)
    t.ok(bytes.length > 1000, 'the recording')
    const steps = async () => {
      const { body } = await control.manage('GET', `/calls/${sid}`)
      const events: { kind: string; detail: { verb: string; text: string } }[] = body.events
      return events.filter(({ kind }) => kind === 'script').map(({ detail }) => detail)
    }
    // The log of the script is no row: its lines are written for themselves.
    await until('the steps of its script are there', async () => (await steps()).some(({ verb }) => verb === 'Record'))
    t.pass('the steps of its script')
    await calls.kill('control', async () =>
      t.match(await steps(), [
        { text: 'cannot be read: the machine at 127.0.0.3, which has the file, does not answer' },
      ]),
    )
    await nobody()
  })
})
