import { notifications } from '../../../../control/alerts/notifications.ts'
import { deliveryTimes } from '../../../../control/reconcilers/delivery-times.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { ProjectPlaces } from '../../../../core/runtime/project-places.ts'
import { claimNotifications, insertNotification } from '../../../../core/state/alerts/alerts.ts'
import {
  claimDeliveries,
  queueEvent,
  settleDelivery,
  type WebhookDeliveryRow,
} from '../../../../core/state/delivery/webhook-endpoints.ts'
import { standingClock } from '../../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { UNHEARD_PORT } from '../../../support/ports.ts'
import { until } from '../../../support/wait.ts'

// A host that starts with a clock which is ahead, until NTP sets it back.

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const townOf = async (t: Test) => {
  const clock = standingClock()
  return { clock, w: await controlPlane(t, { clock }) }
}

async function endpoint(w: ControlPlane): Promise<void> {
  const made = await w.ask('POST', '/v1/webhook-endpoints', {
    body: { url: `http://127.0.0.1:${UNHEARD_PORT}/`, event_kinds: ['call.ended'] },
    headers: { 'Idempotency-Key': freshKey() },
  })
  if (made.status !== 201) throw new Error(made.text)
}

const event = (w: ControlPlane, n: number) =>
  w.state.transaction(trx =>
    queueEvent(trx, { project_id: w.demo.project_id, kind: 'call.ended', data: { n } }, w.clock.now()),
  )

/** Takes the due deliveries. Returns the numbers of their events. */
const taken = async (w: ControlPlane): Promise<readonly [numbers: number[], rows: WebhookDeliveryRow[]]> => {
  const rows = await claimDeliveries(w.state, w.clock.now(), new ProjectPlaces(10))
  return [rows.map(({ payload }) => JSON.parse(payload).data.n), rows]
}

/** Stores an attempt at the present moment that failed, to be repeated in ten seconds, or succeeded. */
const settle = (w: ControlPlane, row: WebhookDeliveryRow, state: 'pending' | 'delivered') => {
  const now_ms = w.clock.now()
  const [last_attempt_at, next_attempt_at] = [iso(now_ms), iso(now_ms + 10_000)]
  return settleDelivery(w.state.db, row, {
    ...{ state, attempts: row.attempts + 1, last_status: null, last_error: null },
    ...{ last_attempt_at, next_attempt_at, delivered_at: state === 'delivered' ? last_attempt_at : null },
  })
}

t.test('a clock that is set back an hour delays no event behind one that failed', async t => {
  const { w, clock } = await townOf(t)
  await endpoint(w)
  await event(w, 1)
  const [, [failed]] = await taken(w)
  if (!failed) throw new Error('nothing was taken')
  await settle(w, failed, 'pending')
  await event(w, 2)
  clock.move(-HOUR_MS)
  await event(w, 3)
  await deliveryTimes.run(w)
  for (const n of [1, 2, 3]) {
    const [numbers, [row]] = await taken(w)
    t.same(numbers, [n])
    if (row) await settle(w, row, 'delivered')
  }
})

t.test('after the clock was set back, waits that are right stay, and a delivery ends after a day', async t => {
  const { w, clock } = await townOf(t)
  await endpoint(w)
  clock.move(30 * DAY_MS)
  await event(w, 1)
  clock.move(-30 * DAY_MS)
  await deliveryTimes.run(w)
  const [, [first]] = await taken(w)
  if (!first) throw new Error('nothing was taken')
  t.equal(first.expires_at, iso(clock.now() + DAY_MS))
  const next_attempt_at = iso(clock.now() + HOUR_MS)
  const outcome = { attempts: 9, last_status: 500, last_error: null, last_attempt_at: iso(clock.now()) }
  await settleDelivery(w.state.db, first, { ...outcome, state: 'pending', delivered_at: null, next_attempt_at })
  await deliveryTimes.run(w)
  t.same(await taken(w), [[], []], 'it waits its hour')
  clock.move(HOUR_MS)
  t.same((await taken(w))[0], [1])
})

t.test('what a process had taken that is gone is free when the clock was set back', async t => {
  const { w, clock } = await townOf(t)
  await endpoint(w)
  await event(w, 1)
  await notice(w)
  t.same((await taken(w))[0], [1])
  t.equal((await claimNotifications(w.state, clock.now(), 10, ['email'])).length, 1)
  await deliveryTimes.run(w)
  t.same((await taken(w))[0], [], 'a running one keeps it')
  clock.move(-DAY_MS)
  await deliveryTimes.run(w)
  t.same((await taken(w))[0], [1])
  t.equal((await claimNotifications(w.state, clock.now(), 10, ['email'])).length, 1)
})

/** Queues a message about an alert, to be sent after this time. */
const notice = (w: ControlPlane, wait_ms = 0, recipient = 'ops@example.com') =>
  w.state.transaction(trx =>
    insertNotification(
      trx,
      {
        ...{ project_id: w.demo.project_id, alert_id: 'alt_1', event: 'alert.fired', channel: 'email' },
        ...{ recipient, subject: 'x', body: 'x', next_attempt_at: iso(w.clock.now() + wait_ms) },
      },
      iso(w.clock.now()),
    ),
  )

t.test('after a clock is set back an hour, due messages about alerts leave, and those of quiet hours wait', async t => {
  const { w, clock } = await townOf(t)
  const sent: string[] = []
  let works = false
  const reconciler = notifications({
    email: {
      async send({ recipient }) {
        if (!works) throw new Error('the network is not up')
        sent.push(recipient)
      },
      close: () => undefined,
    },
  })
  t.teardown(() => reconciler.stop?.())
  const pending = () => w.state.db.selectFrom('alert_notification').selectAll().where('state', '=', 'pending').execute()
  await notice(w, 0, 'failed@example.com')
  await reconciler.run(w)
  await until('the attempt has failed', async () => (await pending()).every(({ attempts }) => attempts === 1))
  await notice(w, 0, 'later@example.com')
  await notice(w, 8 * HOUR_MS, 'night@example.com')
  clock.move(-HOUR_MS)
  works = true
  await deliveryTimes.run(w)
  await reconciler.run(w)
  await until('those that are due are sent', async () => (await pending()).length === 1)
  t.same(sent.sort(), ['failed@example.com', 'later@example.com'])
  t.match(await pending(), [{ recipient: 'night@example.com', created_at: iso(clock.now()) }])
})
