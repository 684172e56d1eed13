import { OPERATOR_SCOPES, type OperatorScope } from '../../../../control/http/access.ts'
import type { Route } from '../../../../control/http/route.ts'
import { OPERATOR_ROUTES } from '../../../../control/operator/index.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { machineOf } from '../../../../core/runtime/machine.ts'
import { hashOfNothing } from '../../../../core/runtime/secrets.ts'
import { ensureDemo } from '../../../../core/state/configuration/bootstrap.ts'
import { bumpConfiguration } from '../../../../core/state/configuration/bump.ts'
import { endQuarantines } from '../../../../core/state/configuration/numbers.ts'
import { openState } from '../../../../core/state/index.ts'
import { listMachines, putMachine, seeMachine } from '../../../../core/state/nodes/machines.ts'
import { askToDrain, registerNode } from '../../../../core/state/nodes/nodes.ts'
import { tasksOf } from '../../../../core/state/nodes/task-lease-rows.ts'
import { INSTALLATION, verifyChain } from '../../../../core/state/people/audit.ts'
import { insertOrganization, insertProject } from '../../../../core/state/people/customers.ts'
import { insertMember } from '../../../../core/state/people/organizations.ts'
import { addCarrier } from '../../../support/carriers.ts'
import { standingClock } from '../../../support/clock.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, type Customer, change, customer, operatorKey, trailOf } from '../../../support/operators.ts'
import { importPriceBook } from '../../../support/rated.ts'

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))

t.test('only an operator’s key, from an operator’s network, is taken', async t => {
  const past = new Date(Date.now() - 1000).toISOString()
  for (const [what, key] of [
    ['no key', null],
    ['a customer’s key', w.key],
    ['a revoked key', await operatorKey(w, { revoked_at: past })],
    ['an expired key', await operatorKey(w, { expires_at: past })],
    ['a key with another secret', (await operatorKey(w)).replace(/.{8}$/, '00000000')],
  ] as const)
    t.match(await w.ask('GET', '/operator/v1/organizations', { key }), { status: 401 }, what)
  const key = await operatorKey(w)
  t.match(await w.ask('GET', '/operator/v1/organizations', { key }), { status: 200 })
  t.match(await w.ask('GET', '/v1/trunks', { key }), { status: 401 }, 'an operator’s key is no customer’s key')
  const elsewhere = await controlPlane(t, { operator_sources: ['10.0.0.0/8'] })
  const refused = await elsewhere.ask('GET', '/operator/v1/organizations', { key: await operatorKey(elsewhere) })
  t.match(refused, { status: 403, body: { code: 'operator_source_forbidden' } })
})

t.test('a forwarded request is of its client when a trusted proxy names it, and never of this machine', async t => {
  const from = async (
    { trusted, sources }: { readonly trusted: readonly string[]; readonly sources: readonly string[] },
    headers: Record<string, string>,
  ) => {
    const there = await controlPlane(t, { trusted_proxies: trusted, operator_sources: sources })
    const { status } = await there.ask('GET', '/operator/v1/organizations', { key: await operatorKey(there), headers })
    return status
  }
  const nobody = { trusted: [], sources: ['loopback', '10.0.0.0/8'] }
  for (const headers of [{ 'X-Forwarded-For': '10.0.0.4' }, { Forwarded: 'for=10.0.0.4' }, { Via: '1.1 proxy' }])
    t.equal(await from(nobody, headers as Record<string, string>), 403, `no proxy is trusted: ${Object.keys(headers)}`)
  const here = { ...nobody, trusted: ['loopback'] }
  t.equal(await from(here, { 'X-Forwarded-For': '10.0.0.4' }), 200, 'the operator’s network through the proxy')
  t.equal(await from(here, { 'X-Forwarded-For': '203.0.113.9' }), 403, 'a stranger through the proxy')
  t.equal(await from(here, { 'X-Forwarded-For': '10.0.0.4, 203.0.113.9' }), 403, 'a stranger that claims an address')
  t.equal(await from(here, { 'X-Forwarded-For': '127.0.0.1' }), 403, 'what a proxy passes on is not of this machine')
})

t.test('a key without the scope of an endpoint is refused by each of them', async t => {
  for (const route of OPERATOR_ROUTES as readonly Route[]) {
    const scopes = OPERATOR_SCOPES.filter(scope => scope !== (route.scope as OperatorScope))
    const without = asks(w, await operatorKey(w, { scopes: JSON.stringify(scopes) }))
    const path = route.path.replace(/\{\w+\}/g, 'nothing')
    const { status, body } = await without(route.method.toUpperCase(), path, route.method === 'get' ? undefined : {})
    t.match({ status, code: body?.code }, { status: 403, code: 'scope_required' }, `${route.method} ${route.path}`)
  }
})

t.test('a new customer leaves the sandbox once every point of the checklist is closed', async t => {
  const before = (await trailOf(w, INSTALLATION)).length
  const { organization_id, project_id } = await customer(ask, 'Customer 1')
  const project = `/projects/${project_id}`
  const open = async () => (await ask('GET', `${project}/checklist`)).body.open
  t.same(await open(), ['carrier', 'price_book', 'number', 'balance'])
  const early = await change(ask, 'POST', `${project}/go-live`, { reason: 'first try' })
  t.match(early, { status: 409, body: { code: 'checklist_open', errors: [{ pointer: '/checklist/carrier' }] } })

  const target = { sip_uri: 'sip:203.0.113.9', transport: 'udp', priority: 1, weight: 1 } as const
  const tls = { tls_verification: 'required', tls_fingerprint: null } as const
  const routes = [{ prefix: '', priority: 10, cost_minor: 5 }]
  const carrier = { name: 'Carrier', codecs: ['PCMA'], sources: [], targets: [{ ...target, ...tls }], routes }
  await addCarrier(w.state, carrier, new Date().toISOString())
  t.same(await open(), ['price_book', 'number', 'balance'])
  const since = new Date(Date.now() - 1000).toISOString()
  const book = { project_id: null, name: 'Retail', direction: 'outbound', currency: 'NGN' } as const
  await importPriceBook(w.state, { ...book, effective_from: since, created_at: since }, [])
  t.same(await open(), ['number', 'balance'])
  t.match(await ask('POST', '/numbers', { first: '+2342011111000', last: '+2342011111009' }), {
    status: 201,
    body: { added: 10 },
  })
  const { body: stock } = await ask('GET', '/numbers?prefix=%2B2342011111003')
  t.match(await change(ask, 'POST', `/numbers/${stock.data[0].id}/assign`, { project_id }), { status: 200 })
  t.same(await open(), ['balance'])
  const paid = await ask('POST', `${project}/top-ups`, {
    amount_minor: 5000,
    reason: 'first payment',
    reference: 'B-1',
  })
  t.match(paid, { status: 201, body: { balance_minor: 5000, available_minor: 5000 } })
  t.same(await open(), [])

  const live = await change(ask, 'POST', `${project}/go-live`, { reason: 'contract signed' })
  t.match(live, { status: 200, body: { sandbox: false, status: 'active', payment: 'prepaid' } })
  const again = await change(ask, 'POST', `${project}/go-live`, { reason: 'again' })
  t.match(again, { status: 409, body: { code: 'state_conflict' } })
  t.match(await trailOf(w, organization_id), [
    { action: 'organization.created', actor: 'operator Operator -' },
    { action: 'project.created', actor: 'operator Operator -' },
    { action: 'member.invited', actor: 'operator Operator -' },
    { action: 'number.assigned', actor: 'operator Operator -' },
    { action: 'balance.topped_up', actor: 'operator Operator -', detail: 'first payment (B-1)' },
    { action: 'project.went_live', actor: 'operator Operator -', detail: 'contract signed' },
  ])
  const actions = (await trailOf(w, INSTALLATION))
    .slice(before)
    .map(({ action, actor }) => `${action} ${actor.split(' ')[1]}`)
  t.same(actions, [
    'organization.created Ada',
    'project.created Ada',
    'member.invited Ada',
    'numbers.stocked Ada',
    'number.assigned Ada',
    'balance.topped_up Ada',
    'project.went_live Ada',
  ])
  for (const trail of [organization_id, INSTALLATION])
    t.match(await verifyChain(w.state.db, trail), { intact: true }, `the chain of ${trail} holds`)
})

t.test('a suspended organization’s projects refuse writes, and those disabled on their own stay so', async t => {
  const [acme, rival] = [await customer(ask, 'Customer 2'), await customer(ask, 'Customer 3')]
  const second = await ask('POST', '/projects', { organization_id: acme.organization_id, name: 'Second' })
  await change(ask, 'POST', `/projects/${second.body.id}/disable`, { reason: 'unused' })
  const keys = {
    acme: await w.newKey({ project_id: acme.project_id }),
    rival: await w.newKey({ project_id: rival.project_id }),
  }
  const writes = (key: string) =>
    w.ask('POST', '/v1/subaccounts', {
      key,
      headers: { 'Idempotency-Key': freshKey() },
      body: { name: `Branch ${freshKey()}`, configuration: { currency: 'NGN', max_concurrent: 3 } },
    })
  t.match(await writes(keys.acme), { status: 201 })
  const organization = `/organizations/${acme.organization_id}`
  t.match(await change(ask, 'POST', `${organization}/suspend`, { reason: 'fraud' }), { body: { status: 'suspended' } })
  t.match(await writes(keys.acme), {
    status: 409,
    body: { code: 'project_disabled', caused_by: 'organization_suspended' },
  })
  t.match(await writes(keys.rival), { status: 201 }, 'another customer is untouched')
  const alone = await change(ask, 'POST', `/projects/${acme.project_id}/enable`, { reason: 'please' })
  t.match(alone, { status: 409, body: { code: 'organization_suspended' } })
  t.match(await change(ask, 'POST', `${organization}/resume`, { reason: 'cleared' }), { body: { status: 'active' } })
  t.match(await writes(keys.acme), { status: 201 })
  t.match((await ask('GET', `/projects/${second.body.id}`)).body, { status: 'disabled' })
})

t.test(
  'a revoked voice account is unknown to the voice-calls API, and the operator switches its event history',
  async t => {
    const path = `/projects/${w.demo.project_id}/voice-account`
    const patch = async (body: object) => {
      const { headers } = await ask('GET', path)
      return ask('PATCH', path, body, { 'If-Match': headers.get('etag') ?? '' })
    }
    const shown = async () => (await w.ask('GET', '/v1/voice-account')).body
    t.equal((await w.voice('GET', '/Calls.json')).status, 200)
    t.match(await patch({ status: 'revoked', call_event_history: 'disabled' }), { status: 200 })
    t.match(await shown(), { status: 'revoked', call_event_history: 'disabled' })
    t.match(await w.voice('GET', '/Calls.json'), { status: 404, body: { code: 'voice_route_not_proxied' } })
    t.match(await patch({ status: 'active' }), { status: 200, body: { call_event_history: 'disabled' } })
    t.equal((await w.voice('GET', '/Calls.json')).status, 200)
    t.match(await patch({ call_event_history: 'enabled' }), { status: 200, body: { status: 'active' } })
    const { organization_id } = await w.state.db
      .selectFrom('project')
      .selectAll()
      .where('id', '=', w.demo.project_id)
      .executeTakeFirstOrThrow()
    t.match((await trailOf(w, organization_id)).at(-1), {
      action: 'voice_account.updated',
      actor: 'operator Operator -',
    })
  },
)

t.test(
  'a voice account is active from the first moment of its project, revoked by operators, and never pending',
  async t => {
    const { project_id, organization_id } = await customer(ask, 'Customer V')
    const path = `/projects/${project_id}/voice-account`
    const second = await ask('POST', '/projects', { organization_id, name: 'Second' })
    for (const id of [project_id, second.body.id])
      t.match((await ask('GET', `/projects/${id}/voice-account`)).body, { status: 'active', revision: 1 }, id)
    const patch = async (status: string) => change(ask, 'PATCH', path, { status })
    t.match(await patch('pending'), { status: 422, body: { errors: [{ pointer: '/status' }] } })
    const stored = async () => {
      const rows = await w.state.db.selectFrom('voice_account').select(['project_id', 'status']).execute()
      return Object.fromEntries(rows.map(row => [row.project_id, row.status]))
    }
    t.equal((await stored())[project_id], 'active', 'what is refused changes nothing')
    t.match(await patch('revoked'), { status: 200, body: { status: 'revoked' } })
    const statuses = await stored()
    t.match(statuses, { [project_id]: 'revoked', [second.body.id]: 'active' }, 'of its project alone')
    t.notOk(Object.values(statuses).includes('pending'), 'no account of this control plane ever was')
  },
)

t.test('money moves by the amount, once for an Idempotency-Key, and each line names its reason', async t => {
  const { project_id } = await customer(ask, 'Customer 4')
  const other = await customer(ask, 'Customer 5')
  const path = `/projects/${project_id}`
  const body = { amount_minor: 900, reason: 'cash', reference: 'R-7' }
  const once = { 'Idempotency-Key': freshKey() }
  t.match(await ask('POST', `${path}/top-ups`, body, once), { status: 201, body: { balance_minor: 900 } })
  t.match(await ask('POST', `${path}/top-ups`, body, once), { status: 201, body: { balance_minor: 900 } })
  const corrected = await ask('POST', `${path}/corrections`, { amount_minor: -150, reason: 'double booking' })
  t.match(corrected, { status: 201, body: { balance_minor: 750 } })
  t.match(await ask('POST', `${path}/corrections`, { amount_minor: 0, reason: 'none' }), { status: 422 })
  t.match(await ask('POST', `${path}/top-ups`, { amount_minor: -5, reason: 'no' }), { status: 422 })
  const { body: ledger } = await ask('GET', `${path}/ledger`)
  t.match(ledger.data, [
    { kind: 'adjustment', amount_minor: -150, balance_after_minor: 750, reason: 'double booking', reference: null },
    { kind: 'top_up', amount_minor: 900, balance_after_minor: 900, reason: 'cash', reference: 'R-7' },
  ])
  t.match(await ask('GET', `/projects/${other.project_id}/balance`), { body: { balance_minor: 0 } })
})

t.test('a number is held by one project, and rests when it is taken back', async t => {
  const [acme, rival] = [await customer(ask, 'Customer 6'), await customer(ask, 'Customer 7')]
  const first = '+2342022222000'
  t.match(await ask('POST', '/numbers', { first }), { status: 201, body: { added: 1 } })
  t.match(await ask('POST', '/numbers', { first }), { status: 409, body: { code: 'resource_exists' } })
  t.match(await ask('POST', '/numbers', { first, last: '+23420222220001' }), { status: 422 })
  const { id } = (await ask('GET', '/numbers?prefix=2342022222000')).body.data[0]
  const assign = (of: Customer) => change(ask, 'POST', `/numbers/${id}/assign`, { project_id: of.project_id })
  t.match(await assign(acme), { status: 200, body: { status: 'held', project_id: acme.project_id } })
  t.match(await assign(rival), { status: 409, body: { code: 'number_in_use' } })
  const key = await w.newKey({ project_id: acme.project_id })
  t.match((await w.ask('GET', '/v1/numbers', { key })).body.data, [{ e164: first }])
  const back = await change(ask, 'POST', `/numbers/${id}/take-back`, { reason: 'unpaid' })
  t.match(back, { status: 200, body: { status: 'quarantined' } })
  t.match(await assign(rival), { status: 409 }, 'not before its quarantine is over')
  t.match((await trailOf(w, acme.organization_id)).at(-1), { action: 'number.taken_back', detail: 'unpaid' })
  t.notMatch(await trailOf(w, rival.organization_id), [{ action: 'number.taken_back' }])
})

t.test('a number whose price was made for one project is not offered at it to others afterwards', async t => {
  const { project_id } = await customer(ask, 'Friend')
  const [first, last] = ['+2342019990000', '+2342019990002']
  const key = await w.newKey({ project_id: (await customer(ask, 'Stranger')).project_id })
  const stock = { first, last, monthly_minor: 50_000 }
  t.match(await ask('POST', '/numbers', stock), { status: 201 })
  const numbers: { id: string }[] = (await ask('GET', '/numbers?prefix=234201999000')).body.data
  const prices = [{ monthly_minor: 0 }, { monthly_minor: 50_000 }, {}]
  for (const [at, { id }] of numbers.entries()) {
    const given = { project_id, ...prices[at] }
    t.match(await change(ask, 'POST', `/numbers/${id}/assign`, given), { status: 200, body: given })
    t.match(await change(ask, 'POST', `/numbers/${id}/take-back`, { reason: 'over' }), { status: 200 })
  }
  await endQuarantines(w.state.db, '2099-01-01T00:00:00.000Z')
  const offered = await w.ask('GET', '/v1/numbers/available?prefix=234201999000', { key })
  t.same(
    offered.body.data.map(({ e164, monthly_minor }: { e164: string; monthly_minor: number }) => [e164, monthly_minor]),
    [
      ['+2342019990001', 50_000],
      ['+2342019990002', 50_000],
    ],
  )
  t.match(await ask('POST', '/number-offers', { ...stock, offered_to: 'all' }), { body: { offered: 3 } })
})

t.test('an operator grants no scope that they lack, and a revoked key is over at once', async t => {
  const made = await ask('POST', '/keys', { name: 'Desk', scopes: ['operator:read', 'operator:customers'] })
  t.match(made, {
    status: 201,
    body: { operator_key: /^ok_live_/, key: { scopes: ['operator:read', 'operator:customers'] } },
  })
  const desk = asks(w, made.body.operator_key)
  const beyond = await desk('POST', '/keys', { name: 'More', scopes: ['operator:money'] })
  t.match(beyond, { status: 422, body: { errors: [{ pointer: '/scopes/0' }] } })
  const stronger = await ask('POST', '/keys', { name: 'Chief', scopes: [...OPERATOR_SCOPES] })
  const coup = await desk('DELETE', `/keys/${stronger.body.key.id}`)
  t.match(coup, { status: 403, body: { code: 'scope_required' } }, 'nor revokes a key with one')
  t.match(await ask('DELETE', `/keys/${made.body.key.id}`), { status: 204 })
  t.match(await desk('GET', '/keys'), { status: 401 })
  t.notMatch((await ask('GET', '/keys')).text, /secret|_[0-9a-f]{32}/)
})

t.test('an invitation makes one member, once, within seven days, and a newer one ends it', async t => {
  const clock = standingClock()
  const w = await controlPlane(t, { clock })
  const ask = asks(w, await operatorKey(w))
  const contact = { name: 'Acme', time_zone: 'Africa/Lagos', contact_email: 'Ada@Acme.example' }
  const made = (await ask('POST', '/organizations', contact)).body
  const path = `/organizations/${made.organization.id}/invitations`
  const tokenOf = (url: string) => new URL(url).hash.slice(1)
  const accept = (token: string) =>
    w.ask('POST', '/console/api/invitations/accept', { key: null, body: { token, password: 'long enough, surely' } })
  t.match((await ask('GET', path)).body.data, [{ email: 'ada@acme.example', role: 'org:admin' }])
  const second = await ask('POST', path, { email: 'ada@acme.example' })
  t.match(await accept(tokenOf(made.invitation.url)), { status: 404, body: { code: 'invitation_over' } })
  const late = await ask('POST', path, { email: 'late@acme.example', role: 'org:viewer' })
  t.match(await accept(tokenOf(second.body.url)), { status: 201, body: { email: 'ada@acme.example' } })
  t.match(await accept(tokenOf(second.body.url)), { status: 404 })
  t.match(await ask('POST', path, { email: 'ada@acme.example' }), { status: 409, body: { code: 'resource_exists' } })
  clock.move(7 * 24 * 60 * 60 * 1000)
  t.match(await accept(tokenOf(late.body.url)), { status: 404, body: { code: 'invitation_over' } })
  t.notMatch(
    (await trailOf(w, made.organization.id)).map(event => JSON.stringify(event)).join(),
    tokenOf(late.body.url),
  )
  t.match((await trailOf(w, made.organization.id)).at(-1), { action: 'member.added' })
})

t.test('the bootstrap never takes a customer’s project for the demo', async t => {
  const empty = await openState({ data_dir: t.testdir(), local: true })
  t.teardown(() => empty.close())
  const now = '2020-01-01T00:00:00.000Z'
  const { master_key } = w.settings
  const customers_project = await empty.transaction(async trx => {
    const named = { name: 'Acme', time_zone: 'UTC', contact_email: 'ada@acme.example' }
    const { id: organization_id } = await insertOrganization(trx, named, now)
    const member = { id: newId.member(), organization_id, email: 'ada@acme.example', role: 'org:admin' } as const
    await insertMember(trx, { ...member, password_hash: '', operator: 0, created_at: now })
    const terms = { name: 'Acme', sandbox: true, prepaid: true, credit_minor: 0 }
    return insertProject(trx, { organization_id, ...terms }, { master_key, now })
  })
  const demo = await ensureDemo(empty, { master_key, now, hashOfPassword: async () => hashOfNothing() })
  t.equal(demo.created, true)
  t.not(demo.project_id, customers_project.id)
})

t.test('the slots of what never was are not found, and those of nobody are none', async t => {
  for (const level of ['project', 'subaccount', 'trunk', 'subtrunk', 'policy'])
    t.match(await ask('GET', `/slots?level=${level}&id=nothing`), { status: 404, body: { code: 'not_found' } }, level)
  t.match(await ask('GET', `/slots?level=project&id=${w.demo.project_id}`), { status: 200, body: { data: [] } })
})

t.test('the first charge of a project finds its account', async t => {
  const { body } = await ask('GET', `/projects/${w.demo.project_id}/balance`)
  t.match(body, { payment: 'postpaid', balance_minor: 0, available_minor: null })
})

t.test('a key makes none that outlives it, whatever the offset of its end', async t => {
  const ends = new Date(Date.now() + 3_600_000).toISOString()
  const made = await ask('POST', '/keys', { name: 'Temp', scopes: ['operator:customers'], expires_at: ends })
  const temp = asks(w, made.body.operator_key)
  const heir = (expires_at?: string | null) =>
    temp('POST', '/keys', {
      name: 'Heir',
      scopes: ['operator:customers'],
      ...(expires_at === undefined ? {} : { expires_at }),
    })
  const inZone = (at: string, hours: number) =>
    `${new Date(Date.parse(at) + hours * 3_600_000).toISOString().slice(0, 19)}+0${hours}:00`
  const later = new Date(Date.parse(ends) + 60_000).toISOString()
  for (const beyond of [undefined, null, later, inZone(later, 5)])
    t.match(await heir(beyond), { status: 422, body: { errors: [{ pointer: '/expires_at' }] } }, String(beyond))
  const sooner = inZone(new Date(Date.parse(ends) - 60_000).toISOString(), 5)
  const { status, body } = await heir(sooner)
  t.equal(status, 201)
  t.equal(body.key.expires_at, new Date(Date.parse(sooner)).toISOString(), 'kept in UTC, so that it ends in time')
})

t.test('terms of payment need the scope for money', async t => {
  const { organization_id, project_id } = await customer(ask, 'Terms')
  const desk = asks(w, await operatorKey(w, { scopes: JSON.stringify(['operator:read', 'operator:customers']) }))
  const path = `/projects/${project_id}`
  for (const terms of [{ payment: 'postpaid' }, { credit_limit_minor: 1_000_000 }]) {
    const refused = { status: 403, body: { code: 'scope_required' } }
    t.match(await change(desk, 'PATCH', path, terms), refused)
    t.match(await desk('POST', '/projects', { organization_id, name: 'More', ...terms }), refused)
  }
  t.match((await ask('GET', path)).body, { payment: 'prepaid', credit_limit_minor: 0 })
  t.match(await change(desk, 'PATCH', path, { name: 'Named' }), { status: 200 })
  t.match(await change(ask, 'PATCH', path, { credit_limit_minor: 5 }), { body: { credit_limit_minor: 5 } })
})

t.test('the monthly price of a number needs the scope for money', async t => {
  const { project_id } = await customer(ask, 'Priced')
  const desk = asks(w, await operatorKey(w, { scopes: JSON.stringify(['operator:read', 'operator:network']) }))
  const refused = { status: 403, body: { code: 'scope_required' } }
  const first = '+2342017770000'
  t.match(await desk('POST', '/numbers', { first, monthly_minor: 500 }), refused)
  t.match(await desk('POST', '/numbers', { first }), { status: 201 })
  const { body } = await ask('GET', '/numbers?prefix=%2B2342017770000')
  const path = `/numbers/${body.data[0].id}`
  t.match(await change(desk, 'POST', `${path}/assign`, { project_id, monthly_minor: 100_000_000 }), refused)
  t.match((await ask('GET', path)).body, { status: 'available', monthly_minor: 0 })
})

t.test('a number that no call can reach is not stocked', async t => {
  for (const first of ['+9990000000', '+2340803123456', '+10000000000'])
    t.match(await ask('POST', '/numbers', { first }), { status: 422, body: { errors: [{ pointer: '/first' }] } }, first)
})

t.test('names and addresses that end a header or deceive are refused', async t => {
  const contact = { time_zone: 'Africa/Lagos', contact_email: 'ada@acme.example' }
  const hidden = ['Ac\u200bme', 'Ac\u00adme', 'Ac\u200dme', 'Ac\u2060me', '\ufeffAcme', '\u3164']
  for (const name of ['Acme">', 'Acme"', 'Ac\u001b[2Jme', 'Ac\u009bme', 'Ac\u202eme', 'Ac\nme', ...hidden])
    t.match(await ask('POST', '/organizations', { ...contact, name }), {
      status: 422,
      body: { errors: [{ pointer: '/name' }] },
    })
  const named = { ...contact, contact_email: 'b@acme.example', name: 'می‌خواهم 👩‍🚀' }
  t.equal((await ask('POST', '/organizations', named)).status, 201, 'scripts and emoji keep their joiners')
  for (const contact_email of [
    'a"@acme.example',
    'a\u200b@acme.example',
    'a@acme>.example',
    'a\u202e@acme.example',
    'a\u0001@acme.example',
  ])
    t.match(
      await ask('POST', '/organizations', { ...contact, name: 'Acme', contact_email }),
      { status: 422 },
      contact_email,
    )
})

t.test('of two writes at once on one revision the second hears of the first, also beside the customer', async t => {
  const { project_id } = await customer(ask, 'Two desks')
  const path = `/projects/${project_id}`
  const rival = asks(w, await operatorKey(w, { name: 'Bob' }))
  const seen = { 'If-Match': (await ask('GET', path)).headers.get('etag') ?? '' }
  const answers = await Promise.all([
    ask('PATCH', path, { credit_limit_minor: 1 }, seen),
    rival('PATCH', path, { credit_limit_minor: 2 }, seen),
  ])
  t.same(answers.map(({ status }) => status).sort(), [200, 412])
  const [won] = answers.filter(({ status }) => status === 200)
  t.equal((await ask('GET', path)).body.credit_limit_minor, won?.body.credit_limit_minor, 'the first write stays')

  const first = '+2342011777001'
  await ask('POST', '/numbers', { first })
  const [number] = (await ask('GET', `/numbers?prefix=${first.slice(1)}`)).body.data
  const given = await change(ask, 'POST', `/numbers/${number.id}/assign`, { project_id: w.demo.project_id })
  const etag = { 'If-Match': given.headers.get('etag') ?? '' }
  const released = await w.ask('POST', `/v1/numbers/${number.id}/release`, {
    headers: { ...etag, 'Idempotency-Key': freshKey() },
  })
  t.equal(released.status, 200)
  const late = await ask('POST', `/numbers/${number.id}/take-back`, { reason: 'unpaid' }, etag)
  t.equal(late.status, 412, 'the operator hears that the customer was first')
})

t.test('a destination that is worth stealing is closed until an operator opens it by name', async t => {
  const { project_id } = w.demo
  const path = `/projects/${project_id}`
  const satellite = '+881612345678'
  const [From = ''] = w.demo.numbers
  const create = () => w.voice('POST', '/Calls.json', { To: satellite, From, Twiml: '<Response/>' })
  const dryRun = async () => {
    const body = { service_type: 'automation', service_id: project_id, called: satellite, caller: From }
    return (await w.ask('POST', '/v1/admission/dry-run', { body, headers: { 'Idempotency-Key': freshKey() } })).body
  }
  const { body } = await ask('GET', path)
  t.same(body.risk.open, [])
  t.ok(body.risk.closed.includes('satellite'))
  t.match(await create(), { status: 403, body: { code: 21215, details: { reason: 'destination_high_risk' } } })
  t.match(await dryRun(), { admitted: false, reason: 'destination_high_risk' })
  t.match(await change(ask, 'PATCH', path, { risk: { open: ['mars'] } }), { status: 422 })
  const desk = asks(w, await operatorKey(w, { name: 'Desk', scopes: '["operator:read","operator:customers"]' }))
  t.match(await change(desk, 'PATCH', path, { risk: { open: ['satellite'] } }), { body: { code: 'scope_required' } })
  const opened = await change(ask, 'PATCH', path, { risk: { open: ['satellite'] } })
  t.match(opened, { status: 200, body: { risk: { open: ['satellite'] } } })
  t.not((await dryRun()).reason, 'destination_high_risk')
  t.not((await create()).body?.details?.reason, 'destination_high_risk')
  const renamed = await change(ask, 'PATCH', path, { name: body.name })
  t.same(renamed.body.risk.open, ['satellite'], 'another change leaves it open')
})

t.test(
  'machines that share the database say how they stand, what they run, and in which settings they differ',
  async t => {
    const { db } = w.state
    const here = machineOf(w.settings.data_dir).machine_id
    const ahead_ms = w.clock.now() + 3_600_000
    const machine = { host: '203.0.113.7', base_url: 'http://203.0.113.7', sip_port: 5060, version: '0.1.0' }
    const put = (id: string, domain: string, roles = 'edge signaling media control') =>
      putMachine(
        db,
        {
          ...machine,
          contracts: '0.1.0',
          id,
          takes_calls: roles === '' ? 0 : 1,
          roles,
          hosts: '',
          settings: JSON.stringify({ STROWGER_DOMAIN: domain, STROWGER_SIPREC: 's' }),
        },
        ahead_ms,
      )
    const runs = async (machine_id: string, kinds: readonly ('signaling' | 'edge' | 'media')[], at_ms = ahead_ms) => {
      for (const kind of kinds)
        await registerNode(db, { id: `${machine_id}-${kind}`, kind, machine_id, boot_id: 'boot_1', pid: 1 }, at_ms)
    }
    const whole = ['signaling', 'edge', 'media'] as const
    await put(here, 'a')
    await runs(here, whole)
    await put('mac_b', 'b')
    await runs('mac_b', ['signaling', 'edge'])
    await put('mac_c', 'a')
    await runs('mac_c', whole)
    await askToDrain(db, 'mac_c', ahead_ms)
    await put('mac_d', 'a')
    await runs('mac_d', whole, w.clock.now() - 60_000)
    await put('mac_e', 'a', 'control')
    await put('mac_h', 'a', '')
    await put('mac_i', 'a')
    await runs('mac_i', whole)
    await put('mac_j', 'a', 'control')
    for (const id of [here, 'mac_b', 'mac_c', 'mac_e', 'mac_h', 'mac_f', 'mac_g']) {
      const name = tasksOf({ machine_id: id })
      const row = { holder: `${id} boot_1 1`, until: new Date(w.clock.now() + 3_600_000).toISOString(), term: 1 }
      await db
        .insertInto('task_lease')
        .values({ name, ...row })
        .onConflict(conflict => conflict.column('name').doUpdateSet(row))
        .execute()
    }
    await put('mac_f', 'a', 'edge control')
    await runs('mac_f', ['edge'])
    await put('mac_g', 'a', 'signaling media')
    await runs('mac_g', ['signaling', 'media'])
    await w.state.transaction(bumpConfiguration)
    const { data } = (await ask('GET', '/machines')).body as { data: { id: string }[] }
    const of = (id: string) => data.find(one => one.id === id)
    t.equal(data.length, 10)
    t.match(of('mac_e'), { state: 'running', processes: ['control'], roles: ['control'] }, 'it serves the APIs alone')
    t.match(of('mac_h'), { state: 'running', roles: ['control'] }, 'as a version without roles says it')
    t.match(
      of('mac_f'),
      { state: 'running', processes: ['control', 'edge'], roles: ['edge', 'control'] },
      'it needs no signaling',
    )
    t.match(of('mac_g'), { state: 'impaired', roles: ['signaling', 'media'] }, 'it cannot reach the edges of others')
    t.match(of(here), { here: true, state: 'running', processes: ['control', ...whole].sort(), other_settings: [] })
    t.match(of('mac_b'), { here: false, state: 'impaired', other_settings: ['STROWGER_DOMAIN'], live_calls: 0 })
    t.match(of('mac_c'), { state: 'draining', other_settings: [] })
    t.match(of('mac_i'), { state: 'impaired', processes: ['edge', 'media', 'signaling'] }, 'its control does not run')
    t.match(of('mac_j'), { state: 'down', processes: [] }, 'nor does this one, which serves the APIs alone')
    t.match(of('mac_d'), { state: 'down', processes: [], configuration_behind: 0 })
    const { revision } = await db.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()
    t.match(of(here), { configuration_behind: revision }, 'its signaling has applied nothing')
    await seeMachine(db, here, '', ahead_ms + 31 * 86_400_000)
    t.same(
      (await listMachines(db)).map(({ id }) => id),
      [here],
      'machines that have not run for a month are forgotten',
    )
  },
)
