import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import twilio from 'twilio'
import { type DelivererOptions, deliverCallbacks } from '../../../../control/webhooks/deliver.ts'
import { LONGEST_WAIT_MS, waitAfter } from '../../../../control/webhooks/retry-delays.ts'
import { type Clock, iso, systemClock } from '../../../../core/runtime/clock.ts'
import { createHttpClient } from '../../../../core/runtime/http/index.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { processName } from '../../../../core/runtime/machine.ts'
import { seal } from '../../../../core/runtime/secrets.ts'
import { createVoiceRequester } from '../../../../core/runtime/voice-request.ts'
import { storeCallback } from '../../../../core/state/delivery/outbox.ts'
import {
  callbackAttempted,
  mendCallbackTimes,
  pruneCallbacks,
  returnCallbacks,
  takeDueCallbacks,
} from '../../../../core/state/delivery/outbox-delivery.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane } from '../../../support/control-plane.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { MACHINE } from '../../../support/machine.ts'
import { UNHEARD_PORT } from '../../../support/ports.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'
import { bodyOf } from '../../../support/web.ts'

interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly fields: Readonly<Record<string, string>>
}

/** Starts a receiver that responds with the status from `answer`, or never when that is null. */
async function receiver(t: Test, answer: (request: Received, count: number) => number | null = () => 204) {
  const requests: Received[] = []
  const server = createServer(async (incoming, outgoing) => {
    const body = await bodyOf(incoming)
    if (body === null) return
    const url = new URL(incoming.url ?? '/', 'http://x')
    const form = new URLSearchParams(body.toString())
    const fields = Object.fromEntries([...url.searchParams, ...form])
    const request = { path: incoming.url ?? '', headers: incoming.headers, fields }
    requests.push(request)
    const status = answer(request, requests.length)
    if (status !== null) outgoing.writeHead(status).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve).closeAllConnections()))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

async function put(w: ControlPlane, url: string, n: number, call_sid = 'CA1', method: 'GET' | 'POST' = 'POST') {
  await w.state.transaction(trx =>
    storeCallback(trx, {
      kind: 'status_callback',
      call_sid,
      project_id: w.demo.project_id,
      url,
      method,
      parameters: { CallSid: call_sid, SequenceNumber: String(n) },
      now_ms: w.clock.now(),
    }),
  )
}

function deliver(t: Test, w: ControlPlane, options: Partial<DelivererOptions> = {}) {
  // Extends the HTTP timeouts, which are not under test: a process without CPU time for 5 s would exceed them.
  const clock: Clock = { ...systemClock, after: (ms, run) => systemClock.after(ms + PATIENCE_MS, run) }
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', clock })
  const deliverer = deliverCallbacks({
    state: w.state,
    bus: w.bus,
    clock: w.clock,
    log: w.log,
    settings: w.settings,
    requester: createVoiceRequester({ http }),
    machine: MACHINE,
    ...options,
    limits: { poll_ms: 50, stop_patience_ms: 200, ...options.limits },
  })
  t.teardown(async () => {
    await deliverer.stop()
    await http.close()
  })
  return deliverer
}

const rows = (w: ControlPlane) => w.state.db.selectFrom('outbox').selectAll().orderBy('id').execute()
const settled = (w: ControlPlane) =>
  until('all callbacks are settled', async () =>
    (await rows(w)).every(one => one.delivered === 1 || one.given_up === 1),
  )

t.test('every attempt of a callback sends the same signed form and idempotency token', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const web = await receiver(t, (_, count) => (count === 1 ? 500 : 204))
  await put(w, `${web.url}/status?keep=1`, 0)
  deliver(t, w)
  await until('the first attempt is settled', async () => (await rows(w))[0]?.attempts === 1)
  t.match((await rows(w))[0], { delivered: 0, given_up: 0, last_status: 500, lease_until: null })
  clock.move(3000)
  await settled(w)
  const [first, second] = web.requests
  if (!first || !second) throw new Error('two attempts were expected')
  t.equal(web.requests.length, 2)
  t.same(second.fields, { keep: '1', CallSid: 'CA1', SequenceNumber: '0' })
  t.match(first.headers['i-twilio-idempotency-token'], /^[0-9a-f-]{36}$/)
  t.equal(first.headers['i-twilio-idempotency-token'], second.headers['i-twilio-idempotency-token'])
  const posted = { CallSid: 'CA1', SequenceNumber: '0' }
  const signature = String(second.headers['x-twilio-signature'])
  t.ok(twilio.validateRequest(w.demo.auth_token, signature, `${web.url}/status?keep=1`, posted))
  t.match((await rows(w))[0], { delivered: 1, attempts: 2, last_status: 204 })
})

t.test('a callback is signed with the auth token that is valid when it is sent', async t => {
  const w = await controlPlane(t)
  const web = await receiver(t)
  const rotated = newId.authToken()
  await put(w, `${web.url}/get`, 3, 'CA2', 'GET')
  await w.state.db
    .updateTable('voice_account')
    .set({ auth_token_sealed: seal(w.settings.master_key, rotated) })
    .execute()
  deliver(t, w)
  await settled(w)
  const [request] = web.requests
  t.equal(request?.path, '/get?CallSid=CA2&SequenceNumber=3')
  const signature = String(request?.headers['x-twilio-signature'])
  t.ok(twilio.validateRequest(rotated, signature, `${web.url}${request?.path}`, {}))
})

t.test('callbacks of one call and URL arrive in order, even when one of them fails', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const web = await receiver(t, ({ fields }, count) => (fields['SequenceNumber'] === '1' && count < 5 ? 503 : 200))
  for (let n = 0; n < 6; n++) await put(w, web.url, n)
  deliver(t, w)
  await until('the second one failed', async () => (await rows(w))[1]?.attempts === 1)
  await put(w, web.url, 6)
  t.same(
    web.requests.map(({ fields }) => fields['SequenceNumber']),
    ['0', '1'],
    'no callback overtakes the failed one',
  )
  await until('everything is delivered', async () => {
    clock.move(5000)
    w.bus.ring('outbox')
    return (await rows(w)).every(({ delivered }) => delivered === 1)
  })
  const seen = web.requests.map(({ fields }) => Number(fields['SequenceNumber']))
  t.same(seen, [...seen].sort(), 'in order')
  t.same([...new Set(seen)], [0, 1, 2, 3, 4, 5, 6])
})

t.test('an endpoint that never answers or is unreachable does not delay the others', async t => {
  const w = await controlPlane(t)
  const silent = await receiver(t, () => null)
  const live = await receiver(t)
  for (let n = 0; n < 40; n++) await put(w, `${silent.url}/#rt=15000`, 0, `CAsilent${n}`)
  for (let n = 0; n < 20; n++) await put(w, `http://127.0.0.1:${UNHEARD_PORT}/`, 0, `CAdead${n}`)
  for (let n = 0; n < 30; n++) await put(w, live.url, 0, `CAlive${n}`)
  deliver(t, w, { limits: { in_flight: 16, in_flight_per_origin: 4 } })
  await until('the live endpoint has everything', () => live.requests.length === 30)
  t.equal(silent.requests.length, 4, 'the silent endpoint occupies only its share of places')
  const left = await rows(w)
  t.ok(left.filter(({ url }) => url.startsWith(silent.url)).every(({ delivered }) => delivered === 0))
})

const rivalOf = async (w: ControlPlane) => asTenant(w, await addTenant(w.state, w.settings.master_key, []))

t.test('a silent server has one share of places, however the project writes its address', async t => {
  const w = await controlPlane(t)
  const rival = await rivalOf(w)
  const silent = await receiver(t, () => null)
  const live = await receiver(t)
  const host = silent.url.slice('http://'.length)
  const starts = ['http://', 'HTTP://', 'http:', 'http:\\\\']
  for (let n = 0; n < 40; n++) await put(w, `${starts[n % 4]}u${n % 8}@${host}/#rt=15000`, 0, `CAsilent${n}`)
  for (let n = 0; n < 30; n++) await put(rival, live.url, 0, `CAlive${n}`)
  deliver(t, w, { limits: { in_flight: 16, in_flight_per_origin: 4 } })
  await until('the rival has everything', () => live.requests.length === 30)
  await until('the silent server has its share', () => silent.requests.length >= 4)
  t.equal(silent.requests.length, 4)
})

t.test('a project whose servers are all silent leaves half of the places to the others', async t => {
  const w = await controlPlane(t)
  const rival = await rivalOf(w)
  const silent = await Promise.all(Array.from({ length: 5 }, () => receiver(t, () => null)))
  const live = await receiver(t)
  for (let n = 0; n < 8; n++) for (const { url } of silent) await put(w, `${url}/#rt=15000`, 0, `CAsilent${n}`)
  for (let n = 0; n < 30; n++) await put(rival, live.url, 0, `CAlive${n}`)
  deliver(t, w, { limits: { in_flight: 16, in_flight_per_origin: 4 } })
  await until('the rival has everything', () => live.requests.length === 30)
  const heard = () => silent.reduce((count, { requests }) => count + requests.length, 0)
  await until('the silent servers have their share', () => heard() >= 8)
  t.equal(heard(), 8)
})

t.test('a project that names slow pages of a rival leaves the rival its places at that server', async t => {
  const w = await controlPlane(t)
  const rival = await rivalOf(w)
  const server = await receiver(t, ({ path }) => (path === '/slow' ? null : 204))
  for (let n = 0; n < 20; n++) await put(w, `${server.url}/slow#rt=15000`, 0, `CAslow${n}`)
  for (let n = 0; n < 30; n++) await put(rival, `${server.url}/own`, 0, `CAown${n}`)
  deliver(t, w, { limits: { in_flight: 16, in_flight_per_origin: 4 } })
  const heard = (at: string) => server.requests.filter(({ path }) => path === at).length
  await until('the rival has everything', () => heard('/own') === 30)
  await until('the other has its share', () => heard('/slow') >= 4)
  t.equal(heard('/slow'), 4)
})

t.test('after its last retry a callback is given up, and the next one of its call is sent', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const web = await receiver(t, ({ fields }) => (fields['SequenceNumber'] === '0' ? 500 : 200))
  await put(w, web.url, 0)
  await put(w, web.url, 1)
  await put(w, 'ftp://nowhere/', 0, 'CA9')
  const results: string[] = []
  deliver(t, w, { attempted: result => results.push(result) })
  await until('everything is settled', async () => {
    clock.move(LONGEST_WAIT_MS)
    w.bus.ring('outbox')
    return (await rows(w)).every(one => one.delivered === 1 || one.given_up === 1)
  })
  t.match(await rows(w), [
    { given_up: 1, attempts: 10, last_status: 500 },
    { delivered: 1, attempts: 1 },
    { given_up: 1, attempts: 1, last_status: null },
  ])
  t.equal(results.filter(result => result === 'failed').length, 9)
  let waited_ms = 0
  for (let attempts = 1; ; attempts++) {
    const wait_ms = waitAfter(attempts, 0.999)
    if (wait_ms === null) break
    t.ok(wait_ms <= LONGEST_WAIT_MS)
    waited_ms += wait_ms
  }
  t.ok(waited_ms > 3_600_000, 'the retries last for more than an hour')
})

t.test('a receiver that was down for an hour gets every callback, in order for each call', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const began_ms = clock.now()
  const down = (): boolean => clock.now() - began_ms < 3_600_000
  const web = await receiver(t, () => (down() ? 503 : 204))
  let made = 0
  deliver(t, w)
  const waiting = async () => (await rows(w)).filter(one => one.delivered === 0)
  // Meanwhile five calls continue. Each queues a callback every twelve minutes.
  for (let minute = 0; minute < 60; minute += 12) {
    for (let call = 0; call < 5; call++) await put(w, web.url, made, `CA${call}`)
    made++
    w.bus.ring('outbox')
    await until('the newest callbacks were tried or wait behind others', async () => {
      const all = await waiting()
      const due = all.filter(one => Date.parse(one.next_attempt_at) <= clock.now())
      return due.every(({ ordering_key, id }) => all.some(o => o.ordering_key === ordering_key && o.id < id))
    })
    clock.move(12 * 60_000)
  }
  const failed = web.requests.length
  t.ok(failed >= 25, `callbacks are retried while the receiver is down: ${failed} times`)
  t.equal((await waiting()).length, 25, 'no callback is lost or given up')
  await until('everything is delivered', async () => {
    clock.move(600_000)
    w.bus.ring('outbox')
    return (await waiting()).length === 0
  })
  for (let call = 0; call < 5; call++)
    t.same(
      web.requests
        .slice(failed)
        .filter(({ fields }) => fields['CallSid'] === `CA${call}`)
        .map(({ fields }) => Number(fields['SequenceNumber'])),
      [0, 1, 2, 3, 4],
      `CA${call} is in order`,
    )
})

t.test("a killed process's callbacks are taken again when their lease ends, and not before", async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  await put(w, 'http://a.test/', 0)
  const take = (now_ms: number) =>
    takeDueCallbacks(w.state.db, {
      by: 'mac_1 boot_1 1',
      now_ms,
      lease_ms: 25_000,
      limit: 10,
      but_not: [],
      under_way: [],
    })
  const now = clock.now()
  t.equal((await take(now)).length, 1)
  t.equal((await take(now + 24_000)).length, 0)
  t.equal((await take(now + 25_000)).length, 1)
  const yesterday = now - 86_400_000
  t.equal((await take(yesterday)).length, 0)
  await mendCallbackTimes(w.state.db, { now_ms: yesterday, lease_ms: 25_000, longest_wait_ms: LONGEST_WAIT_MS })
  t.equal((await take(yesterday)).length, 1, 'a clock that steps back a day delays nothing')
})

t.test('the outcome of a process that stood still does not undo that of the one which took over', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { db } = w.state
  await put(w, 'http://a.test/', 0)
  const limits = { lease_ms: 25_000, limit: 10, but_not: [], under_way: [] }
  const take = async (by: string, now_ms: number) => {
    const [row] = await takeDueCallbacks(db, { ...limits, by, now_ms })
    if (!row) throw new Error('nothing was taken')
    return row
  }
  const now = w.clock.now()
  const failed = { attempts: 1, status: 500, error: 'late', next: { at_ms: now + 60_000 } } as const
  const mine = await take('mac_1 boot_1 1', now)
  const theirs = await take('mac_2 boot_2 2', now + 25_000)
  await callbackAttempted(db, mine, failed)
  await returnCallbacks(db, [mine.id], mine.lease_by)
  t.match(await rows(w), [{ attempts: 0, last_error: null, lease_until: iso(now + 50_000) }], 'the other one sends it')
  await callbackAttempted(db, theirs, { attempts: 1, status: 200, error: null, next: 'delivered' })
  await callbackAttempted(db, mine, { ...failed, next: 'given_up' })
  t.match(await rows(w), [{ attempts: 1, delivered: 1, given_up: 0, last_status: 200 }])
})

t.test('a lease that a machine takes while another one corrects times stays', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  await put(w, 'http://a.test/', 0)
  const now_ms = w.clock.now()
  const limits = { lease_ms: 25_000, limit: 10, but_not: [], under_way: [] }
  await takeDueCallbacks(w.state.db, { ...limits, by: 'mac_2 boot_2 2', now_ms })
  await mendCallbackTimes(w.state.db, { now_ms: now_ms - 50, lease_ms: 25_000, longest_wait_ms: LONGEST_WAIT_MS })
  t.match(await rows(w), [{ lease_until: iso(now_ms + 25_000) }])
})

t.test(
  'a starting deliverer frees the callbacks of its predecessor, but not the running ones of another machine',
  async t => {
    const w = await controlPlane(t, { clock: standingClock() })
    const other = { machine_id: 'mac_2', boot_id: 'boot_2' }
    const held = await receiver(t, () => null)
    const web = await receiver(t)
    await put(w, `${web.url}/of-a-predecessor`, 1)
    const before = processName({ ...MACHINE, boot_id: 'boot_0', pid: 1 })
    const now_ms = w.clock.now()
    const taking = {
      by: before,
      now_ms,
      lease_ms: 25_000,
      limit: 1,
      but_not: [],
      under_way: [],
    }
    t.equal((await takeDueCallbacks(w.state.db, taking)).length, 1)
    await put(w, `${held.url}/of-another`, 0)
    deliver(t, w, { machine: other })
    await until('the other machine has sent its callback', () => held.requests.length === 1)
    deliver(t, w)
    await until("the predecessor's callback is delivered", () => web.requests.length === 1)
    t.equal(held.requests.length, 1, "the other machine's callback is not sent again")
  },
)

t.test('stopping returns running deliveries to the queue without counting the attempt', async t => {
  const w = await controlPlane(t)
  const silent = await receiver(t, () => null)
  await put(w, silent.url, 0)
  const deliverer = deliver(t, w)
  await until('the delivery is running', () => silent.requests.length === 1)
  await deliverer.stop()
  t.match(await rows(w), [{ attempts: 0, lease_until: null, delivered: 0, given_up: 0 }])
})

t.test('each failed attempt is an event of the call with its error number', async t => {
  const w = await controlPlane(t)
  const web = await receiver(t, () => 500)
  await put(w, web.url, 0, 'CA7')
  await put(w, `http://127.0.0.1:${UNHEARD_PORT}/`, 0, 'CA7')
  deliver(t, w)
  const events = () =>
    w.state.db.selectFrom('call_event').selectAll().where('call_sid', '=', 'CA7').orderBy('number').execute()
  // On a busy machine a retry may already have happened.
  const told = await until('both attempts are stored', async () => {
    const all = await events()
    return new Set(all.map(({ number }) => number)).size >= 2 && all
  })
  t.same(
    [...new Map(told.map(({ kind, number }) => [number, [kind, number]])).values()],
    [
      ['http', 11202],
      ['http', 15003],
    ],
  )
})

t.test('settled callbacks are pruned, waiting ones never', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  for (let n = 0; n < 3; n++) await put(w, 'http://a.test/', n)
  await w.state.db.updateTable('outbox').set({ delivered: 1 }).where('id', '=', 1).execute()
  await w.state.db.updateTable('outbox').set({ given_up: 1 }).where('id', '=', 2).execute()
  t.equal(await pruneCallbacks(w.state, clock.now()), 0)
  t.equal(await pruneCallbacks(w.state, clock.now() + 1), 2)
  t.match(await rows(w), [{ id: 3 }])
})
