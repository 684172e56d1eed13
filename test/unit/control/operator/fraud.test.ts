import { INSTALLATION } from '../../../../core/state/people/audit.ts'
import { findAnyProject } from '../../../../core/state/people/customers.ts'
import { alertWorld, setBalance } from '../../../support/alert-world.ts'
import { freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, operatorKey, trailOf } from '../../../support/operators.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

// The fraud desk: what operators see and decide about all customers.

const w = await alertWorld(t)
const ask = asks(w, await operatorKey(w))
const rival_tenant = await addTenant(w.state, w.settings.master_key, [])
const rival = asTenant(w, rival_tenant)
const { name: project_name = '' } = (await findAnyProject(w.state.db, w.demo.project_id)) ?? {}
const risk = { reason_category: 'destination_risk', reason_detail: 'seen in the press', expires_in_seconds: 3600 }

t.test('operators see the alerts of all customers and answer for them without their names', async t => {
  await setBalance(w, 1)
  const { data } = (await ask('GET', '/alerts?kind=balance_low')).body
  t.match(data, [{ project_id: w.demo.project_id, project_name, kind: 'balance_low', state: 'firing' }])
  const reader = asks(w, await operatorKey(w, { scopes: JSON.stringify(['operator:read']) }))
  t.equal((await reader('GET', '/alerts')).status, 200)
  const path = `/alerts/${data[0].id}/acknowledge`
  t.match(await reader('POST', path), { status: 403, body: { code: 'scope_required', reason: 'operator:fraud' } })
  t.match(await ask('POST', path), { status: 200, body: { state: 'acknowledged', acknowledged_by: 'operator' } })
  const [shown] = (await w.ask('GET', '/v1/alerts')).body.alerts
  t.match(shown, { state: 'acknowledged', acknowledged_by: 'operator' })
  t.notMatch(JSON.stringify(await trailOf(w, data[0].organization_id)), /Ada/)
})

t.test('a prefix is closed for one project alone, and opened by the decision about its request', async t => {
  const prefix = '+88213'
  const closed = await ask('POST', '/containments', { prefix, project_id: w.demo.project_id, ...risk })
  t.match(closed, { status: 201, body: { prefix, project_id: w.demo.project_id, project_name, trunk_id: null } })
  const open = async (of: Pick<typeof w, 'ask'>) => (await of.ask('GET', '/v1/containments?open=true')).body.data
  t.match(await open(w), [{ prefix, reason_detail: 'seen in the press' }])
  t.same(await open(rival), [], 'the other customer is untouched')
  const requests = `/v1/containments/${closed.body.id}/release-requests`
  const idempotent = () => ({ headers: { 'Idempotency-Key': freshKey() }, body: { note: 'It was us.' } })
  t.equal((await rival.ask('POST', requests, idempotent())).status, 404, 'nor does it know of it')
  t.equal((await w.ask('POST', requests, idempotent())).status, 201)
  const [request] = (await ask('GET', '/release-requests?state=pending')).body.data
  t.match(request, { note: 'It was us.', containment: { id: closed.body.id, prefix, project_name } })
  const decide = (decision: string) =>
    ask('POST', `/release-requests/${request.id}/decide`, { decision, reason: 'checked' })
  t.match(await decide('approved'), { status: 200, body: { state: 'approved', decision_by: 'operator' } })
  t.same(await open(w), [])
  t.match(await decide('rejected'), { status: 409, body: { code: 'state_conflict' } }, 'a decision stands')
  t.match(await ask('POST', `/containments/${closed.body.id}/release`, { reason: 'again' }), { status: 409 })
})

t.test('a customer is told once that a prefix is open, however often operators say so', async t => {
  const hook = { url: 'https://app.example.com/hook', event_kinds: ['containment.released'] }
  const headers = { 'Idempotency-Key': freshKey() }
  t.equal((await w.ask('POST', '/v1/webhook-endpoints', { body: hook, headers })).status, 201)
  const released = async () => (await w.state.db.selectFrom('webhook_delivery').selectAll().execute()).length
  const asked = async (prefix: string) => {
    const { body } = await ask('POST', '/containments', { prefix, project_id: w.demo.project_id, ...risk })
    const headers = { 'Idempotency-Key': freshKey() }
    const request = { headers, body: { note: 'It was us.' } }
    t.equal((await w.ask('POST', `/v1/containments/${body.id}/release-requests`, request)).status, 201)
    const { data } = (await ask('GET', '/release-requests?state=pending')).body
    const approve = () => ask('POST', `/release-requests/${data[0].id}/decide`, { decision: 'approved' })
    return { release: () => ask('POST', `/containments/${body.id}/release`, { reason: 'checked' }), approve }
  }
  const first = await asked('+88214')
  t.equal((await first.release()).status, 200)
  t.equal(await released(), 1)
  t.match(await first.approve(), { status: 200, body: { state: 'approved' } })
  t.equal(await released(), 1, 'the approval found it open')

  const second = await asked('+88215')
  await w.pass(3_601_000)
  t.match(await second.release(), { status: 409, body: { detail: /expired/ } })
  t.match(await second.approve(), { status: 200, body: { state: 'approved' } })
  t.equal(await released(), 1, 'nor is an expired one released')
})

t.test('what leads to an emergency number stays open, and where to close must be said once', async t => {
  t.match(await ask('PUT', '/short-codes', { code: '112', sends_to: '+234112000' }), { status: 200 })
  const of = { project_id: w.demo.project_id, ...risk }
  const refused = await ask('POST', '/containments', { prefix: '+234', ...of })
  t.match(refused, { status: 409, body: { code: 'state_conflict', detail: /protected: an emergency number/ } })
  for (const where of [{}, { project_id: 'prj_none' }, { trunk_id: 'trk_none' }])
    t.match(await ask('POST', '/containments', { prefix: '+88299', ...risk, ...where }), { status: 422 })
  const [event] = (await ask('GET', '/audit?action=short_code.changed')).body.data
  t.match(event, { actor: { type: 'operator', name: 'Ada' }, summary: 'Short code 112 leads to +234112000' })
  const { changes } = (await ask('GET', `/audit/${event.id}`)).body
  t.match(changes, [{ label: 'sends_to', before: null, after: '+234112000' }])
  const nobody = (await ask('GET', '/audit?actor_name=Nobody')).body
  t.match(nobody, { data: [], total: 0 })
  t.ok(nobody.total_all > 0)
  t.ok((await trailOf(w, INSTALLATION)).some(({ action }) => action === 'containment.opened'))
})

t.test('a default caller is a number that the trunk’s project holds now', async t => {
  const trunk = {
    ...{ name: 'Office', direction: 'both', auth_mode: 'ip_allow_list', sources: [], codecs: ['PCMA'], targets: [] },
    ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
  }
  const made = await rival.ask('POST', '/v1/trunks', { body: trunk, headers: { 'Idempotency-Key': freshKey() } })
  const path = `/trunks/${made.body.trunk.id}/number-format`
  const patch = async (body: object) => {
    const { headers } = await ask('GET', path)
    return ask('PATCH', path, body, { 'If-Match': headers.get('etag') ?? '' })
  }
  const [foreign] = w.demo.numbers
  t.match(await patch({ default_caller: foreign }), { status: 422, body: { errors: [{ pointer: '/default_caller' }] } })
  t.match(await patch({ country: 'XX' }), { status: 422, body: { errors: [{ pointer: '/country' }] } })
  t.match(await patch({ country: 'gb' }), { status: 200, body: { country: 'GB', default_caller: null } })
  t.equal((await rival.ask('GET', `/v1/trunks/${made.body.trunk.id}`)).body.revision, 2, 'the trunk has a new revision')
})
