import { createHmac } from 'node:crypto'
import { emailChannel, smtpSettings } from '../../control/alerts/channels.ts'
import { type Channels, notifications } from '../../control/alerts/notifications.ts'
import { shortMessages } from '../../control/alerts/short-messages.ts'
import { webhookDeliveries } from '../../control/reconcilers/webhook-deliveries.ts'
import { createHttpClient } from '../../core/runtime/http/index.ts'
import { type AlertWorld, alertWorld, httpSink, mailServer, setBalance } from '../support/alert-world.ts'
import { freshKey, openSandbox } from '../support/control-plane.ts'
import t from '../support/harness/index.ts'
import { until } from '../support/wait.ts'

// Notifications: mail through a real SMTP server, signed webhooks and short messages. A change of a policy does not
// change earlier alerts.

const HOUR_MS = 3_600_000
const FROM = 'alerts@strowger.test'

type Teardown = { teardown(end: () => unknown): void }

const http = (t: Teardown) => {
  const client = createHttpClient({ allow_private: ['loopback'], user_agent: 'test' })
  t.teardown(() => client.close())
  return client
}

/** Runs the delivery until nothing is due. */
async function sendAll(t: Teardown, w: AlertWorld, channels: Channels): Promise<void> {
  const reconciler = notifications(channels)
  t.teardown(() => reconciler.stop?.())
  await reconciler.run(w)
  await until('every message that was due has been tried', async () => {
    const due = await w.state.db
      .selectFrom('alert_notification')
      .select('id')
      .where('state', '=', 'pending')
      .where('next_attempt_at', '<=', new Date(w.clock.now()).toISOString())
      .execute()
    return due.length === 0
  })
}

const settings = (w: AlertWorld, body: object) =>
  w.ask('PUT', '/v1/alerts/settings', {
    body: { email_recipients: null, quiet_from: null, quiet_to: null, sms_recipients: [], ...body },
  })

async function patchPolicy(w: AlertWorld, kind: string, revision: number, body: object) {
  const { data } = (await w.ask('GET', '/v1/alerts/policies')).body
  const policy = data.find((one: { kind: string }) => one.kind === kind)
  return w.ask('PATCH', `/v1/alerts/policies/${policy.id}`, {
    headers: { 'If-Match': `"${revision}"`, 'Idempotency-Key': freshKey() },
    body,
  })
}

t.test('an alert and its end are sent by mail, by a signed webhook and by a short message', async t => {
  const w = await alertWorld(t)
  const mail = await mailServer(t)
  const customer = await httpSink(t)
  const provider = await httpSink(t)
  const { body: made } = await w.ask('POST', '/v1/webhook-endpoints', {
    headers: { 'Idempotency-Key': freshKey() },
    body: { url: customer.url, event_kinds: ['alert.fired', 'alert.resolved'] },
  })
  await settings(w, { email_recipients: ['ops@example.com', 'boss@example.com'], sms_recipients: ['+2348030000009'] })
  await patchPolicy(w, 'balance_low', 1, { channels: ['in_app', 'email', 'webhook', 'sms'] })
  const client = http(t)
  const channels: Channels = {
    email: emailChannel(smtpSettings(mail.url, FROM)),
    ...shortMessages({ ...w, settings: { ...w.settings, sms_url: provider.url, sms_token: 'tok' } }, client),
  }
  await setBalance(w, 1)
  const [alert] = await w.alerts('balance_low')
  t.match(alert, { state: 'firing', channels: ['in_app', 'email', 'webhook', 'sms'], policy_revision: 2 })
  await sendAll(t, w, channels)

  t.same(mail.mails.map(one => one.to[0]).sort(), ['boss@example.com', 'ops@example.com'])
  const [first] = mail.mails
  t.equal(first?.from, FROM)
  t.match(first?.text, /^Subject: \[Strowger warning\] The balance of Prepaid is NGN 0\.01/m)
  t.match(first?.text, /^Auto-Submitted: auto-generated/m)
  t.match(first?.text, /What to do: Top up the balance/)
  t.match(first?.text, /See the balance: http:\/\/strowger\.test\/v1\/billing\/balance/)
  t.match(JSON.parse(provider.heard[0]?.body ?? ''), { to: '+2348030000009', text: /^Strowger warning: The balance/ })
  t.equal(provider.heard[0]?.headers.authorization, 'Bearer tok')

  const delivery = webhookDeliveries(client)
  await delivery.run(w)
  await until('the webhook was called', () => customer.heard.length === 1)
  const [hook] = customer.heard
  const [, at = '', signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(hook?.headers['x-strowger-signature'])) ?? []
  const signed = createHmac('sha256', made.signing_secret).update(`${at}.${customer.url}${hook?.body}`).digest('hex')
  t.equal(signature, signed, 'the signature is made with the endpoint’s secret')
  t.match(JSON.parse(hook?.body ?? ''), { kind: 'alert.fired', data: { id: alert.id, state: 'firing' } })

  await setBalance(w, 900_000)
  await sendAll(t, w, channels)
  t.equal(mail.mails.length, 4)
  t.match(mail.mails.at(-1)?.text, /Subject: \[Strowger warning\] Resolved: /)
  t.match(JSON.parse(provider.heard[1]?.body ?? ''), { text: /Resolved: / })
  await until('the webhook was called again', async () => {
    await delivery.run(w)
    return customer.heard.length === 2
  })
  t.match(JSON.parse(customer.heard[1]?.body ?? ''), { kind: 'alert.resolved', data: { state: 'resolved' } })
})

t.test(
  'without recipients, admins and engineers are notified; without a channel the message fails with a reason',
  async t => {
    const w = await alertWorld(t)
    const mail = await mailServer(t)
    await setBalance(w, 1)
    await sendAll(t, w, { email: emailChannel(smtpSettings(mail.url, FROM)), sms: null })
    t.same(
      mail.mails.map(one => one.to),
      [['admin@strowger.local']],
    )
    await w.pass(HOUR_MS)
    await setBalance(w, 900_000)
    await sendAll(t, w, { email: null, sms: null })
    const rows = await w.state.db.selectFrom('alert_notification').selectAll().orderBy('created_at').execute()
    t.match(rows, [{ state: 'delivered' }, { state: 'failed', last_error: 'no email channel is configured' }])
  },
)

t.test('mail refused by the server is retried after 10 s and delivered', async t => {
  const w = await alertWorld(t)
  const mail = await mailServer(t)
  const channels: Channels = { email: emailChannel(smtpSettings(mail.url, FROM)), sms: null }
  const row = () => w.state.db.selectFrom('alert_notification').selectAll().executeTakeFirstOrThrow()
  mail.refuse(true)
  await setBalance(w, 1)
  await sendAll(t, w, channels)
  const tried = await row()
  t.match(tried, { state: 'pending', attempts: 1, last_error: /Try again later/ })
  const wait_ms = Date.parse(tried.next_attempt_at) - w.clock.now()
  t.ok(wait_ms >= 10_000 && wait_ms <= 12_000, `tried again after ${wait_ms} ms`)
  mail.refuse(false)
  await w.pass(12_000)
  await sendAll(t, w, channels)
  t.match(await row(), { state: 'delivered', attempts: 2, last_error: null })
  t.equal(mail.mails.length, 1)
})

t.test('alerts that are not critical wait until quiet hours end, also across midnight', async t => {
  // Noon UTC is 13:00 in Lagos.
  const w = await alertWorld(t, '2026-03-11T22:30:00.000Z')
  const mail = await mailServer(t)
  const channels: Channels = { email: emailChannel(smtpSettings(mail.url, FROM)), sms: null }
  t.equal((await settings(w, { quiet_from: '22:00' })).status, 422, 'one end alone makes no quiet time')
  await settings(w, { quiet_from: '22:00', quiet_to: '06:30' })
  await setBalance(w, 1)
  await sendAll(t, w, channels)
  t.same(mail.mails, [])
  const { next_attempt_at } = await w.state.db.selectFrom('alert_notification').selectAll().executeTakeFirstOrThrow()
  t.equal(next_attempt_at, '2026-03-12T05:30:00.000Z', 'half past six in Lagos')
  t.match(await w.alerts('balance_low'), [{ state: 'firing' }], 'in the console it shows at once')
  await w.pass(7 * HOUR_MS)
  await sendAll(t, w, channels)
  t.equal(mail.mails.length, 1)

  await setBalance(w, 900_000)
  await w.pass(17 * HOUR_MS)
  await setBalance(w, 0)
  await sendAll(t, w, channels)
  t.match(mail.mails.at(-1)?.text, /Strowger critical/, 'what is grave does not wait')
})

t.test('quiet hours end by the clock also in the night in which it goes back', async t => {
  const w = await alertWorld(t, '2026-10-24T22:00:00.000Z')
  await w.state.db.updateTable('organization').set({ time_zone: 'Europe/London' }).execute()
  await settings(w, { quiet_from: '22:00', quiet_to: '06:30' })
  await setBalance(w, 1)
  const { next_attempt_at } = await w.state.db.selectFrom('alert_notification').selectAll().executeTakeFirstOrThrow()
  t.equal(next_attempt_at, '2026-10-25T06:30:00.000Z', 'half past six in London, seven and a half hours of the clock')
})

t.test('a change creates a revision; alerts keep the revision that they fired under', async t => {
  const w = await alertWorld(t)
  await setBalance(w, 1)
  const threshold = { amount_minor: 100 }
  const changed = await patchPolicy(w, 'balance_low', 1, { threshold, resolution: { rule: 'acknowledged_or_24h' } })
  t.match(changed, { status: 200, body: { revision: 2, threshold, resolution: { rule: 'acknowledged_or_24h' } } })
  t.match(await patchPolicy(w, 'balance_low', 1, { enabled: false }), { status: 412 })
  const wrong = await patchPolicy(w, 'balance_low', 2, { resolution: { rule: 'day_rollover' } })
  t.match(wrong, { status: 422, body: { code: 'validation_failed' } })
  const rows = await w.state.db
    .selectFrom('alert_policy')
    .selectAll()
    .where('kind', '=', 'balance_low')
    .orderBy('revision')
    .execute()
  t.match(
    rows.map(row => [row.revision, JSON.parse(row.threshold).amount_minor, row.newest]),
    [
      [1, 500_000, 0],
      [2, 100, 1],
    ],
  )
  const [old] = await w.alerts('balance_low')
  t.match(old, { policy_revision: 1 })
  await w.ask('POST', `/v1/alerts/${old.id}/acknowledge`)
  t.match(await w.alerts('balance_low'), [{ state: 'acknowledged' }], 'it ends by its own rule, not by the new one')
  await setBalance(w, 600_000)
  t.match(await w.alerts('balance_low'), [{ state: 'resolved', policy_revision: 1 }])
  await setBalance(w, 101)
  t.equal((await w.alerts('balance_low')).length, 1, 'the new threshold counts for what comes')
  await w.pass(1000)
  await setBalance(w, 99)
  const [fresh] = await w.alerts('balance_low')
  t.match(fresh, { state: 'firing', policy_revision: 2 })
  t.match((await w.ask('POST', `/v1/alerts/${fresh.id}/acknowledge`)).body, { state: 'resolved' })
  const trail = (await w.ask('GET', '/v1/audit?range=all&kind=alerts')).body.data
  const actions = trail.map((event: { action: string }) => event.action)
  for (const action of ['alert_policy.updated', 'alert.fired', 'alert.acknowledged', 'alert.resolved'])
    t.ok(actions.includes(action), action)
})

t.test('only admins and billing members see alerts about money', async t => {
  const w = await alertWorld(t)
  await setBalance(w, 1)
  const seen = async (role: 'org:viewer' | 'org:engineer') => {
    const key = await w.newKey({ role })
    const kinds = (await w.ask('GET', '/v1/alerts/policies', { key })).body.data.map(
      (one: { kind: string }) => one.kind,
    )
    return [(await w.ask('GET', '/v1/alerts', { key })).body.alerts.length, kinds.includes('balance_low')]
  }
  t.equal((await w.ask('GET', '/v1/alerts')).body.alerts.length, 1)
  t.same(await seen('org:engineer'), [0, false])
  t.same(await seen('org:viewer'), [0, false])
})

t.test('a short message can be delivered as a spoken call', async t => {
  const w = await alertWorld(t)
  await openSandbox(w)
  await settings(w, { sms_recipients: ['+2348030000009'] })
  await patchPolicy(w, 'balance_low', 1, { channels: ['sms'] })
  await setBalance(w, 1)
  const services = { ...w, settings: { ...w.settings, sms_url: 'voice:' } }
  await sendAll(t, w, shortMessages(services, http(t)))
  const call = await w.state.db.selectFrom('call').selectAll().executeTakeFirstOrThrow()
  t.match(call, { to_number: '+2348030000009', from_number: w.demo.numbers[0], status: 'queued' })
  t.match(JSON.parse(call.request ?? '{}').markup, /<Say loop="2">Strowger warning: The balance of Prepaid/)
  t.same(Object.keys(shortMessages({ ...w, settings: { ...w.settings, sms_url: 'sip:192.0.2.1' } }, http(t))), [])
})
