import { WebSocket } from 'ws'
import { ending } from '../../../../core/domain/calls/endings.ts'
import { type Clock, iso, systemClock } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { insertCall, writeCall } from '../../../../core/state/calls/running-calls.ts'
import { insertTestAlert, insertTestContainment } from '../../../support/alerts.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addTenant } from '../../../support/tenants.ts'
import { until } from '../../../support/wait.ts'

const w = await controlPlane(t, { trusted_proxies: ['loopback'] })

// biome-ignore lint/suspicious/noExplicitAny: messages have several shapes.
type Told = any

interface Listener {
  readonly told: Told[]
  readonly socket: WebSocket
  readonly closed: Promise<number>
}

async function listen(t: { teardown(end: () => void): void }, headers: Record<string, string>, path = '/v1/events') {
  const socket = new WebSocket(`${w.base_url.replace('http', 'ws')}${path}`, { headers })
  const told: Told[] = []
  socket.on('message', data => told.push(JSON.parse(String(data))))
  const closed = new Promise<number>(resolve => socket.once('close', resolve))
  t.teardown(() => socket.terminate())
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('unexpected-response', (_request, response) => {
      let text = ''
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => reject(Object.assign(new Error(text), { status: response.statusCode })))
    })
    socket.once('error', reject)
  })
  return { told, socket, closed } satisfies Listener
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
const find = (listener: Listener, what: string, fits: (told: Told) => boolean) =>
  until(what, () => listener.told.find(fits))

async function addCall(w: ControlPlane, to: string): Promise<string> {
  const sid = newId.call()
  const at = iso(Date.now())
  await w.state.transaction(trx =>
    insertCall(
      trx,
      {
        sid,
        project_id: w.demo.project_id,
        origin: 'rest',
        direction: 'outbound-api',
        from_number: '+2342010000001',
        to_number: to,
        status: 'queued',
        request: '{}',
        queued_at: at,
      },
      Date.now(),
    ),
  )
  return sid
}

t.test('a listener receives the running calls, then each change once', async t => {
  const before = await addCall(w, '+2348030000001')
  const listener = await listen(t, bearer(w.key))
  t.match(await find(listener, 'hello', told => told.type === 'hello'), { project_id: w.demo.project_id })
  const { calls } = await find(listener, 'calls', told => told.type === 'calls')
  t.ok(calls.some((call: Told) => call.id === before))
  const sid = await addCall(w, '+2348030000002')
  w.bus.ring('calls')
  const told = await find(listener, 'the new call', told => told.type === 'call' && told.call.id === sid)
  t.equal(told.call.status, 'queued')
  await writeCall(w.state.db, sid, [{ step: 'ringing', at_ms: Date.now() + 1 }])
  await find(listener, 'it rings', told => told.type === 'call' && told.call.status === 'ringing')
  const final = ending({ cause: 'called_hung_up', answered: true })
  const facts = { ending: final, ended_ms: Date.now() + 2, pdd_ms: null, media: null }
  await writeCall(w.state.db, sid, [{ step: 'end', facts }])
  await find(listener, 'it ended', told => told.type === 'call' && told.call.id === sid && told.call.ended_at !== null)
  t.equal(listener.told.filter(told => told.type === 'call' && told.call.id === sid).length, 3)

  const alert = await insertTestAlert(w)
  t.match(await find(listener, 'the alert', told => told.type === 'alert'), { alert: { id: alert, state: 'firing' } })
  await w.ask('POST', `/v1/alerts/${alert}/acknowledge`)
  await find(listener, 'its acknowledgement', told => told.type === 'alert' && told.alert.state === 'acknowledged')
  const containment = await insertTestContainment(w)
  const closed = await find(listener, 'the containment', told => told.type === 'containment')
  t.equal(closed.containment.id, containment)
})

t.test('a listener that joins while the last one leaves receives events', async t => {
  let last = await listen(t, bearer(w.key))
  for (let round = 0; round < 20; round++) {
    last.socket.terminate()
    const ringing = setInterval(() => w.bus.ring('calls'), 1)
    last = await listen(t, bearer(w.key))
    await find(last, 'calls', told => told.type === 'calls')
    clearInterval(ringing)
    const sid = await addCall(w, '+2348030000003')
    await find(last, 'the new call', told => told.type === 'call' && told.call.id === sid)
  }
})

t.test('a listener receives events about trunks, tests and nodes', async t => {
  const listener = await listen(t, bearer(w.key))
  await find(listener, 'calls', told => told.type === 'calls')
  const { body } = await w.ask('POST', '/v1/trunks', {
    body: {
      name: 'Trunk',
      direction: 'both',
      auth_mode: 'digest',
      sources: [],
      targets: [],
      codecs: ['PCMA'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
    },
    headers: { 'Idempotency-Key': freshKey() },
  })
  const applying = await find(listener, 'the trunk', told => told.type === 'trunk_apply')
  t.match(applying, { trunk_id: body.trunk.id, apply: { state: 'applying', desired_revision: 1 } })
  const test = await w.ask('POST', `/v1/trunks/${body.trunk.id}/tests`, {
    body: { kind: 'config_validation' },
    headers: { 'Idempotency-Key': freshKey() },
  })
  const run_id = test.body.run.id
  await w.state.db
    .insertInto('trunk_test_check')
    .values({
      id: `${run_id}.1`,
      run_id,
      sequence: 1,
      state: 'passed',
      summary: 'fine',
      target_ref: null,
      node_id: null,
      duration_ms: 1,
      occurred_at: iso(Date.now()),
    })
    .execute()
  t.match(await find(listener, 'a check', told => told.type === 'trunk_test' && told.check), {
    run_id,
    check: { state: 'passed', sequence: 1 },
  })
  await w.state.db
    .updateTable('trunk_test_run')
    .set({ result: 'passed', finding: 'All is well.', finished_at: iso(Date.now()) })
    .where('id', '=', run_id)
    .execute()
  t.match(await find(listener, 'the end', told => told.type === 'trunk_test' && told.check === null), {
    result: 'passed',
    finding: 'All is well.',
  })
  const now = iso(Date.now())
  const node = { id: 'node_x', kind: 'signaling' as const, pid: 1, started_at: now, heartbeat_at: now }
  await w.state.db.insertInto('node').values(node).execute()
  t.match(await find(listener, 'a node', told => told.type === 'node'), { node: { id: 'node_x', state: 'up' } })
  await w.state.db.deleteFrom('node').where('id', '=', 'node_x').execute()
  await find(listener, 'its loss', told => told.type === 'node' && told.node.state === 'lost')
})

t.test('a refused listener gets the same status as a refused request', async t => {
  const status = (headers: Record<string, string>, path?: string) =>
    listen(t, headers, path).then(
      () => 101,
      error => error.status,
    )
  t.equal(await status({}), 401)
  t.equal(await status(bearer('sk_live_AAAAAAAAAAAA_00000000000000000000000000000000')), 401)
  t.equal(await status(bearer(await w.newKey({ scopes: '["call_history:read"]' }))), 403)
  t.equal(await status({ ...bearer(w.key), 'X-Project-ID': 'x' }), 400)
  t.equal(await status({ ...bearer(w.key), 'X-Project-ID': newId.project() }), 404)
  t.equal(await status(bearer(w.key), '/v1/nothing'), 404)
  t.equal(await status({ Origin: 'https://evil.example' }, '/console/api/v1/events'), 403)
  t.equal(await status({ Origin: w.base_url }, '/console/api/v1/events'), 401)
  const proxy = { 'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Host': 'voice.example', 'X-Forwarded-Proto': 'https' }
  const through = (Origin: string) => status({ ...proxy, Origin }, '/console/api/v1/events')
  t.equal(await through('https://voice.example'), 401, 'the host that the proxy names is ours')
  t.equal(await through(w.base_url), 403, 'the one behind the proxy is not')
  t.equal(await through('http://voice.example'), 403, 'nor is a page that came without TLS')
})

t.test("a subaccount's key receives only events about its own trunks", async t => {
  const listener = await listen(t, bearer(await w.newKey({ subaccount_id: 'sub_x' })))
  const { calls } = await find(listener, 'calls', told => told.type === 'calls')
  t.same(calls, [])
  const other = await listen(t, bearer(w.key))
  await find(other, 'calls', told => told.type === 'calls')
  const sid = await addCall(w, '+2348030000003')
  await find(other, 'the call', told => told.type === 'call' && told.call.id === sid)
  t.notOk(listener.told.some(told => told.type === 'call'))
})

t.test('a project has a limit of listeners, so that one customer leaves room for its rival', async t => {
  const add = () => addTenant(w.state, w.settings.master_key, [])
  const [greedy, rival] = [bearer((await add()).api_key), bearer((await add()).api_key)]
  // They come at once: listeners that have not joined yet count too.
  const asked = await Promise.allSettled(Array.from({ length: 52 }, () => listen(t, greedy)))
  const refused = asked.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
  t.match(refused, [{ status: 429 }, { status: 429 }])
  t.equal(refused.length, 2)
  t.match(refused[0].message, /50 listeners of a project/)
  t.ok(await listen(t, rival), 'the rival goes on')
  for (const one of asked) if (one.status === 'fulfilled') one.value.socket.terminate()
  await until('the places of those who left are free', () =>
    listen(t, greedy).then(
      () => true,
      () => false,
    ),
  )
})

t.test('a listener that stops answering pings is disconnected; one that answers stays', async t => {
  const beats: (() => void)[] = []
  const clock: Clock = {
    ...systemClock,
    every(period_ms, run) {
      // The test controls only the pings.
      if (period_ms !== 30_000) return systemClock.every(period_ms, run)
      beats.push(run)
      return { cancel() {} }
    },
  }
  const other = await controlPlane(t, { clock })
  const open = (autoPong: boolean) =>
    new WebSocket(`${other.base_url.replace('http', 'ws')}/v1/events`, { headers: bearer(other.key), autoPong })
  const deaf = open(false)
  const well = open(true)
  t.teardown(() => well.terminate())
  let closed = false
  deaf.once('close', () => {
    closed = true
  })
  const heard = (socket: WebSocket, event: 'message' | 'ping') =>
    new Promise<void>(resolve => socket.once(event, () => resolve()))
  await Promise.all([heard(deaf, 'message'), heard(well, 'message')])
  for (let beat = 0; beat < 2; beat += 1) {
    const pinged = heard(well, 'ping')
    for (const run of beats) run()
    await pinged
    // When the server answers this ping, it has received the pong to its own.
    await new Promise<void>(resolve => {
      well.ping()
      well.once('pong', () => resolve())
    })
  }
  await until('the silent listener is disconnected', () => closed)
  t.equal(well.readyState, WebSocket.OPEN)
})

t.test('a listener that does not read is closed at 4 MiB of backlog and does not delay the others', async t => {
  const other = await controlPlane(t)
  const CALLS = 50
  const sids: string[] = []
  for (let at = 0; at < CALLS; at++) sids.push(await addCall(other, `+2348030000002;note=${'x'.repeat(20_000)}`))
  const open = () => new WebSocket(`${other.base_url.replace('http', 'ws')}/v1/events`, { headers: bearer(other.key) })
  const first = (socket: WebSocket) => new Promise<void>(resolve => socket.once('message', () => resolve()))
  const slow = open()
  const well = open()
  t.teardown(() => well.terminate())
  const closed = new Promise<number>(resolve => slow.once('close', resolve))
  await Promise.all([first(slow), first(well)])
  slow.pause()
  let heard = 0
  well.on('message', data => {
    if (String(data).slice(0, 40).includes('"type":"call",')) heard++
  })
  // Each turn sends about 1 MB: in total more than the buffers of both sockets and 4 MiB.
  const TURNS = 14
  for (let turn = 1; turn <= TURNS; turn++) {
    await other.state.db
      .updateTable('call')
      .set({ updated_at: iso(Date.now() + turn) })
      .where('sid', 'in', sids)
      .execute()
    other.bus.ring('calls')
    await until('the reading listener has received this turn', () => heard >= turn * CALLS)
  }
  slow.resume()
  t.equal(await closed, 1013, 'the close code means "try again later" (RFC 6455 registry)')
  t.equal(well.readyState, WebSocket.OPEN)
})
