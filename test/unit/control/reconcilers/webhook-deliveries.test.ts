import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { oldDeliveries, webhookDeliveries } from '../../../../control/reconcilers/webhook-deliveries.ts'
import { type Clock, iso, systemClock } from '../../../../core/runtime/clock.ts'
import { createHttpClient } from '../../../../core/runtime/http/index.ts'
import { ProjectPlaces } from '../../../../core/runtime/project-places.ts'
import { claimDeliveries, queueEvent, settleDelivery } from '../../../../core/state/delivery/webhook-endpoints.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import { onPostgres } from '../../../support/engine.ts'
import t from '../../../support/harness/index.ts'
import { UNHEARD_PORT } from '../../../support/ports.ts'
import { plansOfWork } from '../../../support/query-plans.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'

interface Heard {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Starts a customer's server. It responds with the status from `answer`, or never when that is null. */
async function receiver(t: { teardown(end: () => unknown): void }, answer: (heard: Heard) => number | null) {
  const heard: Heard[] = []
  let told = (): void => undefined
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const one = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() }
      heard.push(one)
      const status = answer(one)
      if (status !== null) response.writeHead(status).end()
      told()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    async until(count: number): Promise<void> {
      while (heard.length < count)
        await new Promise<void>(resolve => {
          told = resolve
        })
    },
  }
}

const endpoint = async (w: ControlPlane, url: string) => {
  const { body, status, text } = await w.ask('POST', '/v1/webhook-endpoints', {
    body: { url, event_kinds: ['call.ended'] },
    headers: { 'Idempotency-Key': freshKey() },
  })
  if (status !== 201) throw new Error(text)
  return { id: body.endpoint.id as string, secret: body.signing_secret as string }
}

const event = (w: ControlPlane, n: number, now_ms = w.clock.now()) =>
  w.state.transaction(trx =>
    queueEvent(trx, { project_id: w.demo.project_id, kind: 'call.ended', data: { n } }, now_ms),
  )

function deliveries(t: { teardown(end: () => unknown): void }, clock: Clock = systemClock) {
  const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', clock })
  const reconciler = webhookDeliveries(http)
  t.teardown(() => reconciler.stop?.())
  return reconciler
}

const states = async (w: ControlPlane, id: string) =>
  (await w.ask('GET', `/v1/webhook-endpoints/${id}/deliveries`)).body.data

/** Runs the task until `done`, as the timer would. Each run delivers what is due. */
async function rounds(w: ControlPlane, reconciler: ReturnType<typeof webhookDeliveries>, done: () => Promise<boolean>) {
  while (!(await done())) {
    await reconciler.run({ ...w })
    await new Promise(resolve => setImmediate(resolve))
  }
}

t.test('events arrive in order, signed, each with its own id', async t => {
  const w = await controlPlane(t)
  const customer = await receiver(t, () => 204)
  const { id, secret } = await endpoint(w, `${customer.url}/hook`)
  for (let n = 0; n < 5; n += 1) t.equal(await event(w, n), 1)
  await rounds(w, deliveries(t), async () =>
    (await states(w, id)).every((one: { state: string }) => one.state === 'delivered'),
  )
  t.same(
    customer.heard.map(one => JSON.parse(one.body).data.n),
    [0, 1, 2, 3, 4],
  )
  const [first] = customer.heard
  if (!first) throw new Error('nothing was heard')
  t.equal(first.headers['x-strowger-event'], 'call.ended')
  t.equal(first.headers['x-strowger-event-id'], JSON.parse(first.body).id)
  t.equal(new Set(customer.heard.map(one => one.headers['x-strowger-event-id'])).size, 5)
  const [, timestamp, signature] =
    /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(first.headers['x-strowger-signature'])) ?? []
  const expected = createHmac('sha256', secret).update(`${timestamp}.${customer.url}/hook${first.body}`).digest('hex')
  t.equal(signature, expected)
})

t.test('a failing endpoint is retried later and does not delay the others', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const broken = await receiver(t, () => 500)
  const well = await receiver(t, () => 200)
  const first = await endpoint(w, broken.url)
  const second = await endpoint(w, well.url)
  for (let n = 0; n < 3; n += 1) t.equal(await event(w, n), 2)
  await rounds(w, deliveries(t), async () => {
    const good = (await states(w, second.id)).every((one: { state: string }) => one.state === 'delivered')
    return good && (await states(w, first.id)).some((one: { attempts: number }) => one.attempts > 0)
  })
  t.equal(well.heard.length, 3)
  const failed = await states(w, first.id)
  t.same(
    failed.map((one: { attempts: number }) => one.attempts),
    [0, 0, 1],
    'later events wait for the first',
  )
  t.match(failed[2], { state: 'pending', last_status: 500, last_error: 'answered with 500' })
  t.ok(Date.parse(failed[2].next_attempt_at) > w.clock.now() + 5000, 'back-off')
})

t.test('projects whose endpoints never answer leave places to a project that comes later', async t => {
  const w = await controlPlane(t)
  const tenant = async () => asTenant(w, await addTenant(w.state, w.settings.master_key, []))
  const silent = await receiver(t, () => null)
  const well = await receiver(t, () => 204)
  const stuck = await Promise.all([tenant(), tenant(), tenant()])
  for (const one of stuck) {
    for (let n = 0; n < 20; n += 1) await endpoint(one, silent.url)
    t.equal(await event(one, 1), 20)
  }
  // The silent ones hold their places for longer than this test waits.
  const clock: Clock = { ...systemClock, after: (ms, run) => systemClock.after(ms + PATIENCE_MS, run) }
  const reconciler = deliveries(t, clock)
  await reconciler.run({ ...w })
  await silent.until(30)
  const rival = await tenant()
  const { id } = await endpoint(rival, well.url)
  await event(rival, 1)
  await until('the rival has its event', async () => {
    await reconciler.run({ ...w })
    return (await states(rival, id))[0].state === 'delivered'
  })
  t.ok(silent.heard.length < 50, `${silent.heard.length} of 60 deliveries to the silent server`)
})

t.test(
  'events that wait behind one that failed do not read what their endpoint was sent before',
  { skip: onPostgres() && 'explains the plans of SQLite' },
  async t => {
    const w = await controlPlane(t, { clock: standingClock() })
    await endpoint(w, `http://127.0.0.1:${UNHEARD_PORT}/`)
    for (let n = 0; n < 3; n += 1) await event(w, n)
    const now_ms = w.clock.now()
    const claim = (state: ControlPlane['state']) => claimDeliveries(state, now_ms, new ProjectPlaces(10))
    const [first] = await claim(w.state)
    if (!first) throw new Error('nothing was claimed')
    const late = { attempts: 1, last_attempt_at: iso(now_ms), next_attempt_at: iso(now_ms + 10_000) }
    const failed = { ...late, state: 'pending', last_status: 500, last_error: 'late', delivered_at: null } as const
    await settleDelivery(w.state.db, first, failed)
    t.same(await claim(w.state), [], 'they wait')
    const plans = await plansOfWork(w.state, claim)
    t.ok(plans.some(step => step.includes('webhook_delivery_waiting')))
    t.notOk(
      plans.some(step => step.includes('webhook_delivery_endpoint')),
      plans.join('\n'),
    )
  },
)

t.test('the outcome of a machine that stood still does not undo that of the one which took over', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { id } = await endpoint(w, `http://127.0.0.1:${UNHEARD_PORT}/`)
  await event(w, 1)
  const now_ms = w.clock.now()
  const claim = async (at_ms: number) => {
    const [delivery] = await claimDeliveries(w.state, at_ms, new ProjectPlaces(1))
    if (!delivery) throw new Error('nothing was claimed')
    return delivery
  }
  const [mine, theirs] = [await claim(now_ms), await claim(now_ms + 61_000)]
  const tried = { attempts: 1, last_attempt_at: iso(now_ms), next_attempt_at: iso(now_ms + 70_000) }
  const failed = { ...tried, state: 'pending', last_status: null, last_error: 'late', delivered_at: null } as const
  await settleDelivery(w.state.db, mine, failed)
  t.match(await states(w, id), [{ attempts: 0 }], 'the other one sends it')
  const done = { state: 'delivered', last_status: 204, last_error: null, delivered_at: iso(now_ms) } as const
  await settleDelivery(w.state.db, theirs, { ...tried, ...done })
  await settleDelivery(w.state.db, mine, failed)
  t.match(await states(w, id), [{ state: 'delivered', last_status: 204 }])
})

t.test('a delivery is given up after a day, can be redelivered, and is deleted after a month', async t => {
  const w = await controlPlane(t)
  let status = 503
  const customer = await receiver(t, () => status)
  const { id } = await endpoint(w, customer.url)
  await event(w, 1, Date.now() - 24 * 3_600_000)
  const reconciler = deliveries(t)
  await rounds(w, reconciler, async () => (await states(w, id))[0].state === 'failed')
  status = 200
  const [old] = await states(w, id)
  const again = await w.ask('POST', `/v1/webhook-endpoints/${id}/deliveries/${old.id}/redeliver`, {
    headers: { 'Idempotency-Key': freshKey() },
  })
  t.equal(again.status, 201)
  t.equal(again.body.event_id, old.event_id)
  await rounds(w, reconciler, async () => (await states(w, id))[0].state === 'delivered')
  t.equal(new Set(customer.heard.map(one => one.headers['x-strowger-event-id'])).size, 1)
  await w.state.db
    .updateTable('webhook_delivery')
    .set({ created_at: new Date(Date.now() - 31 * 24 * 3_600_000).toISOString() })
    .execute()
  await oldDeliveries.run({ ...w })
  t.same(await states(w, id), [])
})
