import { systemClock } from '../../../../core/runtime/clock.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'

// Calling hours of a policy: what REST calls and the dry run get in them and outside of them.

// A Sunday in Lagos, an hour ahead of UTC.
let now_ms = Date.parse('2026-03-08T02:12:00Z')
const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
await putSandboxCarrier(w.state, {
  machine_id: 'mac_1',
  host: '127.0.0.1',
  port: 5999,
  now: new Date(now_ms).toISOString(),
})
const { body: organization } = await w.ask('GET', '/v1/organization')
const { body: policies } = await w.ask('GET', '/v1/outbound-policies')
const standard = policies.data.find((one: { system_default: boolean }) => one.system_default)
const path = `/v1/outbound-policies/${standard.id}`
const settings = { name: 'Default', recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }

async function save(changes: object) {
  const { headers } = await w.ask('GET', path)
  return w.ask('PATCH', path, {
    body: { ...settings, ...changes },
    headers: { 'If-Match': headers.get('etag') ?? '', 'Idempotency-Key': freshKey() },
  })
}

const call = () =>
  w.voice('POST', '/Calls.json', {
    ...{ To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response><Hangup/></Response>' },
  })
const dryRun = (called: string) =>
  w.ask('POST', '/v1/admission/dry-run', {
    body: { service_type: 'automation', service_id: w.demo.project_id, called, caller: w.demo.numbers[0] },
    headers: { 'Idempotency-Key': freshKey() },
  })

t.test('outside the calling hours of its policy no call begins, and the dry run says so', async t => {
  const zone = organization.time_zone as string
  t.equal(zone, 'Africa/Lagos')
  const first = await call()
  t.equal(first.status, 201, first.text)
  const calling_hours = [{ days: ['monday', 'tuesday'], from: '08:00', to: '18:30' }]
  const saved = await save({ calling_hours })
  t.match([saved.status, saved.body.calling_hours], [200, calling_hours])
  const refused = await call()
  t.match([refused.status, refused.body.code], [403, 21215])
  t.match(refused.body.message, /Sunday 03:12 \(Africa\/Lagos\).*calling hours of policy "Default"/)
  const verdict = (await dryRun('+2348030000001')).body
  t.match(verdict, { admitted: false, reason: 'outside_calling_hours' })
  now_ms = Date.parse('2026-03-09T06:59:00Z')
  t.equal((await call()).status, 403, 'a minute before')
  now_ms = Date.parse('2026-03-09T07:00:00Z')
  t.equal((await call()).status, 201, 'Monday at eight in Lagos')
  t.notMatch((await dryRun('+2348030000001')).body, { reason: 'outside_calling_hours' })
  t.match((await save({})).body, { calling_hours }, 'a body without hours keeps them')
  now_ms = Date.parse('2026-03-11T12:00:00Z')
  t.equal((await call()).status, 403)
  t.equal((await save({ calling_hours: null })).body.calling_hours, null)
  t.equal((await call()).status, 201)
})

t.test('hours that no clock shows are refused', async t => {
  for (const window of [
    { days: [], from: '08:00', to: '18:00' },
    { days: ['monday'], from: '24:00', to: '18:00' },
    { days: ['monday'], from: '08:00', to: '25:00' },
    { days: ['monday', 'monday'], from: '08:00', to: '18:00' },
    { days: ['Montag'], from: '08:00', to: '18:00' },
  ])
    t.equal((await save({ calling_hours: [window] })).status, 422, JSON.stringify(window))
})
