import { iso } from '../../../../core/runtime/clock.ts'
import { standingClock } from '../../../support/clock.ts'
import { type Answer, type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, change, operatorKey } from '../../../support/operators.ts'
import { addTenant, asTenant } from '../../../support/tenants.ts'

// Subtrunks and the number blocks that are delegated to them.

const TRUNK = {
  ...{ name: 'Head office', direction: 'both', auth_mode: 'ip_allow_list', sources: [], targets: [], codecs: ['PCMA'] },
  ...{ media_security: 'rtp', require_tls: false, source_validation: 'relaxed' },
}
const CEILINGS = {
  concurrency: 5,
  cps: 2,
  daily_spend_cap_minor: 1_000_000,
  velocity_cap_minor: null,
  max_call_duration_seconds: 600,
  max_destination_rate_minor: null,
}

interface Family {
  readonly trunk_id: string
  /** The path of the subtrunk. */
  readonly path: string
  readonly id: string
}

const post = (w: ControlPlane, path: string, body: object, etag = ''): Promise<Answer> =>
  w.ask('POST', path, { body, headers: { 'Idempotency-Key': freshKey(), ...(etag ? { 'If-Match': etag } : {}) } })

async function family(w: ControlPlane): Promise<Family> {
  const trunk_id = (await post(w, '/v1/trunks', TRUNK)).body.trunk.id
  const body = { name: 'Reseller', status: 'enabled', configuration: CEILINGS }
  const made = await post(w, `/v1/trunks/${trunk_id}/subtrunks`, body)
  return { trunk_id, id: made.body.id, path: `/v1/trunks/${trunk_id}/subtrunks/${made.body.id}` }
}

t.test('a configuration without one of the ceilings is refused, and null means no ceiling', async t => {
  const w = await controlPlane(t)
  const { path } = await family(w)
  const patch = (configuration: object, etag: string) =>
    w.ask('PATCH', path, { body: { configuration }, headers: { 'If-Match': etag } })
  t.same((await w.ask('GET', path)).body.configuration, CEILINGS)
  const { concurrency: _, ...rest } = CEILINGS
  const without = await patch(rest, '"1"')
  t.match(without, { status: 422, body: { errors: [{ pointer: '/configuration/concurrency' }] } })
  t.same((await w.ask('GET', path)).body.configuration, CEILINGS, 'no ceiling was cleared')
  const all = await patch({ ...CEILINGS, cps: null }, '"1"')
  t.match(all, { status: 200, body: { revision: 2, configuration: { concurrency: 5, cps: null } } })
  const renamed = await w.ask('PATCH', path, { body: { name: 'Other' }, headers: { 'If-Match': '"2"' } })
  t.match(renamed, { status: 200, body: { name: 'Other', configuration: { concurrency: 5 } } })
})

t.test('usage counts refused calls by reason', async t => {
  const w = await controlPlane(t, { clock: standingClock() })
  const { path, id } = await family(w)
  const day = iso(w.clock.now()).slice(0, 10)
  const counts = { concurrency_exceeded: 4, cps_exceeded: 3 }
  for (const [reason, count] of Object.entries(counts))
    await w.state.db
      .insertInto('refusal_day')
      .values({ level: 'subtrunk', subject_id: id, day, reason, count })
      .execute()
  const { usage } = (await w.ask('GET', path)).body
  t.match(usage, { call_attempts: 7, answered_calls: 0, refused_calls: 7 })
  t.same(usage.refusals, [
    { reason: 'concurrency_exceeded', count: 4 },
    { reason: 'cps_exceeded', count: 3 },
  ])
})

t.test('delegating a block from either side makes a new revision, and the block lists its consumers', async t => {
  const w = await controlPlane(t)
  const { path, id, trunk_id } = await family(w)
  const [start = '', second = '', third = '', end = ''] = w.demo.numbers
  const block_id = (await post(w, '/v1/number-blocks', { start, end })).body.id
  const first = await post(w, `${path}/delegations`, { block_id, start, end: second }, '"1"')
  t.match(first, { status: 201, body: { start, end: second, size: 2, status: 'pending' } })
  t.equal(first.headers.get('etag'), '"2"')
  const again = await post(w, `/v1/number-blocks/${block_id}/delegate`, { subtrunk_id: id, start: second, end: third })
  t.match(again, { status: 409, body: { code: 'number_in_use' } })
  const other = await post(w, `/v1/number-blocks/${block_id}/delegate`, { subtrunk_id: id, start: third, end })
  t.match(other, { status: 201, body: { size: 2 } })
  t.equal(other.headers.get('etag'), '"3"')
  const blocks = async () => (await w.ask('GET', '/v1/number-blocks')).body.data
  t.same((await blocks())[0].consumers, [{ count: 4, id, name: 'Reseller', type: 'subtrunk' }])
  const taken = await w.ask('DELETE', `${path}/delegations/${first.body.id}`, { headers: { 'If-Match': '"3"' } })
  t.equal(taken.status, 204)
  t.same((await blocks())[0].consumers, [
    { count: 2, id: trunk_id, name: 'Head office', type: 'trunk' },
    { count: 2, id, name: 'Reseller', type: 'subtrunk' },
  ])
  t.equal(
    (await w.ask('DELETE', `${path}/delegations/${other.body.id}`, { headers: { 'If-Match': '"4"' } })).status,
    204,
  )
  const gone = await w.ask('DELETE', path, {
    body: { confirm_name: 'Reseller' },
    headers: { 'If-Match': '"5"', 'Idempotency-Key': freshKey() },
  })
  t.equal(gone.status, 204, gone.text)
  const late = await post(w, `/v1/number-blocks/${block_id}/delegate`, { subtrunk_id: id })
  t.match(late, { status: 409, body: { code: 'state_conflict' } }, 'a releasing subtrunk gets no numbers')
})

t.test('a released number leaves its block and its delegation, and the inventory of its trunk counts it', async t => {
  const w = await controlPlane(t)
  const { path, trunk_id, id } = await family(w)
  const [start = '', second = '', third = '', fourth = '', end = ''] = w.demo.numbers
  const block_id = (await post(w, '/v1/number-blocks', { start, end })).body.id
  await post(w, `${path}/delegations`, { block_id, start, end: fourth }, '"1"')
  const inventory = async () => (await w.ask('GET', `/v1/trunks/${trunk_id}`)).body.number_inventory
  t.match(await inventory(), { delegated: { count: 4, to: 'Reseller' }, quarantined: { count: 0, until: null } })
  const stock = (await w.ask('GET', '/v1/numbers')).body.data as { id: string; e164: string }[]
  const numberId = (e164: string) => stock.find(row => row.e164 === e164)?.id ?? ''
  const number = `/v1/numbers/${numberId(second)}`
  const etag = (await w.ask('GET', number)).headers.get('etag') ?? ''
  const released = await post(w, `${number}/release`, {}, etag)
  t.match(released, { status: 200, body: { status: 'quarantined', route: null } })
  const ranges = async (at: string) =>
    ((await w.ask('GET', at)).body.data as { start: string; end: string; size: number }[]).map(
      row => `${row.start} ${row.end} ${row.size}`,
    )
  t.same(await ranges('/v1/number-blocks'), [`${start} ${start} 1`, `${third} ${end} 3`])
  t.same(await ranges(`${path}/delegations`), [`${start} ${start} 1`, `${third} ${fourth} 2`])
  const until = released.body.quarantined_until
  t.match(await inventory(), { delegated: { count: 3 }, quarantined: { count: 1, until } })

  const ask = asks(w, await operatorKey(w))
  const back = await change(ask, 'POST', `/numbers/${numberId(start)}/take-back`, { reason: 'unpaid' })
  t.match(back, { status: 200, body: { status: 'quarantined' } })
  t.same(await ranges('/v1/number-blocks'), [`${third} ${end} 3`], 'an empty block is gone')
  t.match(await inventory(), { delegated: { count: 2 }, quarantined: { count: 2 } })
  const [left] = (await w.ask('GET', '/v1/number-blocks')).body.data
  t.match(await w.ask('GET', `/v1/number-blocks/${left.id}`), { status: 200, body: left })
  const remove = () => w.ask('DELETE', `/v1/number-blocks/${left.id}`)
  t.match(await remove(), { status: 409, body: { code: 'number_in_use' } }, 'a delegated block is not deleted')
  const [delegation] = (await w.ask('GET', `${path}/delegations`)).body.data.filter(
    (row: { status: string }) => row.status !== 'detaching',
  )
  const { headers } = await w.ask('GET', path)
  const taken = await w.ask('DELETE', `${path}/delegations/${delegation.id}`, {
    headers: { 'If-Match': headers.get('etag') ?? '' },
  })
  t.equal(taken.status, 204)
  await w.state.db.deleteFrom('delegation').where('subtrunk_id', '=', id).execute()
  t.equal((await remove()).status, 204)
  t.equal((await w.ask('GET', `/v1/number-blocks/${left.id}`)).status, 404)
  const kept = (await w.ask('GET', `/v1/numbers/${numberId(third)}`)).body
  t.match(kept, { status: 'held', route: { id: trunk_id } }, 'the numbers of a deleted block stay as they are')
})

t.test('a number block is read and deleted by its project alone, and numbers in use stay as they are', async t => {
  const w = await controlPlane(t)
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, ['+2342017770005']))
  const [start = '', end = ''] = w.demo.numbers
  const block_id = (await post(w, '/v1/number-blocks', { start, end })).body.id
  const path = `/v1/number-blocks/${block_id}`
  const routed = await post(w, '/v1/trunks', { ...TRUNK, number_block_ids: [block_id] })
  const trunk = { id: routed.body.trunk.id, name: TRUNK.name }
  const read = async () => (await w.ask('GET', path)).body
  t.match(await read(), { start, end, size: 2, consumers: [{ ...trunk, count: 2, type: 'trunk' }], delegations: [] })

  const operator = await operatorKey(w)
  const reader = await w.newKey({ scopes: JSON.stringify(['service_configuration:read']) })
  const subaccount_id = (await post(w, '/v1/subaccounts', { name: 'North', configuration: { currency: 'NGN' } })).body
    .id
  const restricted = await w.newKey({ subaccount_id })
  const unknown = path.replace(block_id, 'blk_nothing')
  for (const method of ['GET', 'DELETE']) {
    const foreign = await rival.ask(method, path)
    t.match(foreign, { status: 404, body: { code: 'not_found' } }, `${method} of another customer`)
    const nothing = (await rival.ask(method, unknown)).body.detail
    t.equal(foreign.body.detail.replace(block_id, 'blk_nothing'), nothing, 'as for one that does not exist')
    t.equal((await w.ask(method, path, { key: operator })).status, 401, `${method} with an operator's key`)
    t.equal((await w.ask(method, path, { key: null })).status, 401, `${method} of a stranger`)
    t.equal((await w.ask(method, path, { key: restricted })).status, 403, `${method} of a subaccount's key`)
  }
  t.equal((await w.ask('GET', path, { key: reader })).status, 200)
  t.match(await w.ask('DELETE', path, { key: reader }), { status: 403, body: { reason: 'numbers:manage' } })
  t.match(await read(), { id: block_id, size: 2 }, 'the block is still there')

  t.equal((await w.ask('DELETE', path)).status, 204)
  t.equal((await w.ask('GET', path)).status, 404)
  t.equal((await w.ask('DELETE', path)).status, 404)
  for (const number of (await w.ask('GET', '/v1/numbers')).body.data.slice(0, 2))
    t.match(number, { status: 'held', route: { kind: 'trunk', ...trunk } }, 'its numbers ring where they rang')
  const { data } = (await w.ask('GET', '/v1/audit?limit=1')).body
  t.match(data[0], { action: 'number_block.deleted', summary: `Deleted number block ${start} to ${end}` })
  t.equal((await post(w, '/v1/number-blocks', { start, end })).status, 201, 'the range is free for another block')
})

t.test('only a key that may route and access its numbers can give a block to a trunk or subtrunk', async t => {
  const w = await controlPlane(t)
  const [start = '', end = ''] = w.demo.numbers
  const block_id = (await post(w, '/v1/number-blocks', { start, end })).body.id
  const ask = (key: string, path: string, body: object, etag = '') =>
    w.ask('POST', path, {
      key,
      body,
      headers: { 'Idempotency-Key': freshKey(), ...(etag ? { 'If-Match': etag } : {}) },
    })
  const routes = async () => {
    const rows = await w.state.db.selectFrom('number').select(['route_kind', 'route_id']).where('e164', '>=', start)
    return (await rows.where('e164', '<=', end).execute()).map(row => `${row.route_kind} ${row.route_id}`)
  }
  const before = await routes()

  const writer = await w.newKey({ scopes: JSON.stringify(['service_configuration:write']) })
  const wanted = { ...TRUNK, number_block_ids: [block_id] }
  t.match(await ask(writer, '/v1/trunks', wanted), {
    status: 403,
    body: { code: 'scope_required', reason: 'numbers:manage' },
  })
  t.equal((await ask(writer, '/v1/trunks', TRUNK)).status, 201, 'a trunk without numbers is within its scope')

  const subaccount_id = (await post(w, '/v1/subaccounts', { name: 'North', configuration: { currency: 'NGN' } })).body
    .id
  const restricted = await w.newKey({ subaccount_id })
  const theirs = { ...TRUNK, name: 'North office', subaccount_id }
  const bad = await ask(restricted, '/v1/trunks', { ...theirs, number_block_ids: [block_id] })
  const unknown = await ask(restricted, '/v1/trunks', { ...theirs, number_block_ids: ['blk_unknown'] })
  t.equal(bad.status, 422)
  t.same(bad.body.errors, unknown.body.errors, "the project's block is refused like one that does not exist")
  const trunk_id = (await ask(restricted, '/v1/trunks', theirs)).body.trunk.id
  const share = { name: 'Share', status: 'enabled', configuration: CEILINGS }
  const shares = `/v1/trunks/${trunk_id}/subtrunks`
  const path = `${shares}/${(await ask(restricted, shares, share)).body.id}/delegations`
  t.equal((await ask(restricted, path, { block_id }, '"1"')).status, 404)
  t.same(await routes(), before, 'no number was rerouted')

  await w.state.db
    .updateTable('number')
    .set({ route_kind: 'trunk', route_id: trunk_id })
    .where('e164', '>=', start)
    .where('e164', '<=', end)
    .execute()
  t.equal(
    (await ask(restricted, path, { block_id }, '"1"')).status,
    201,
    'the key may delegate the numbers of its trunk',
  )
})

t.test('a webhook or application URL that cannot be requested is refused when it is saved', async t => {
  const w = await controlPlane(t)
  const urls = ['', 'app.example.com/hook', 'ftp://app.example.com/', 'http://']
  for (const url of [...urls, 'http://a b.example/', 'https://app.example.com\r\nX: y', 'javascript:alert(1)']) {
    const endpoint = await post(w, '/v1/webhook-endpoints', { url, event_kinds: ['call.ended'] })
    t.match(endpoint, { status: 422, body: { errors: [{ pointer: '/url' }] } }, `endpoint ${JSON.stringify(url)}`)
    const body = { name: 'App', voice_method: 'POST', voice_url: url }
    const application = await post(w, '/v1/voice/applications', body)
    const errors = [{ pointer: '/voice_url' }]
    t.match(application, { status: 422, body: { errors } }, `application ${JSON.stringify(url)}`)
  }
  const smtp = await post(w, '/v1/webhook-endpoints', {
    url: 'http://app.example.com:25/',
    event_kinds: ['call.ended'],
  })
  t.match(smtp, { status: 422, body: { errors: [{ message: /port 25 is not for HTTP/ }] } }, 'it says what is wrong')
})

t.test("a subaccount's key can attach only the default policy and the policies of the subaccount's trunks", async t => {
  const w = await controlPlane(t)
  const send = (key: string, method: string, path: string, body: unknown, etag?: string) =>
    w.ask(method, path, {
      ...{ key, body },
      headers: { 'Idempotency-Key': freshKey(), ...(etag === undefined ? {} : { 'If-Match': etag }) },
    })
  const subaccount = async (name: string) => {
    const { body } = await post(w, '/v1/subaccounts', { name, configuration: { currency: 'NGN' } })
    return { subaccount_id: body.id as string, key: await w.newKey({ subaccount_id: body.id }) }
  }
  const [north, south] = [await subaccount('North'), await subaccount('South')]
  const recorded = { recording_channels: 2, recording_mode: 'off', recording_retention_days: 30 }
  const policy = async (name: string): Promise<string> =>
    (await post(w, '/v1/outbound-policies', { name, ...recorded })).body.id
  const [of_north, of_project] = [await policy('Roomy'), await policy('Of the project')]
  const trunkOf = ({ subaccount_id }: { subaccount_id: string }, outbound_policy_id: string | null) => ({
    ...{ ...TRUNK, name: 'Office', subaccount_id },
    ...(outbound_policy_id === null ? {} : { outbound_policy_id }),
  })
  t.equal((await send(w.key, 'POST', '/v1/trunks', trunkOf(north, of_north))).status, 201)

  for (const id of [of_north, of_project]) {
    const created = await send(south.key, 'POST', '/v1/trunks', trunkOf(south, id))
    t.match(created, { status: 422, body: { errors: [{ pointer: '/outbound_policy_id' }] } }, 'a new trunk')
    t.notMatch(created.text, /Roomy|Of the project/)
  }
  const { id } = (await send(south.key, 'POST', '/v1/trunks', trunkOf(south, null))).body.trunk
  const attach = (policy_id: string | null, etag: string, key = south.key) =>
    send(key, 'PUT', `/v1/trunks/${id}/outbound-policy`, { policy_id }, etag)
  const unknown = await attach('pol_unknown', '"1"')
  for (const theirs of [of_north, of_project])
    t.same((await attach(theirs, '"1"')).body.errors, unknown.body.errors, 'it is refused like one that does not exist')
  const attached = await w.state.db
    .selectFrom('policy_attachment')
    .select('policy_id')
    .where('service_id', '=', id)
    .execute()
  t.same(attached, [], 'nothing was attached')

  const own = await send(north.key, 'POST', '/v1/trunks', { ...trunkOf(north, of_north), name: 'Second office' })
  t.match(
    own,
    { status: 201, body: { trunk: { outbound_policy: { id: of_north } } } },
    "the policy of the subaccount's other trunk",
  )
  const { data } = (await w.ask('GET', '/v1/outbound-policies')).body
  const standard = data.find((one: { system_default: boolean }) => one.system_default).id
  t.equal((await attach(standard, '"1"')).status, 200, 'the default policy')
  t.equal((await attach(of_project, '"2"', w.key)).status, 200, 'a key of the project attaches any policy')
  t.equal((await attach(null, '"3"')).status, 200)
})

t.test('a number of another customer is refused as one that nobody has', async t => {
  const w = await controlPlane(t)
  const [foreign, absent] = ['+2342017770001', '+2342017770002'] as const
  await addTenant(w.state, w.settings.master_key, [foreign])
  for (const [path, bodyOf] of [
    ['/v1/number-orders', (e164: string) => ({ numbers: [e164] })],
    ['/v1/number-blocks', (e164: string) => ({ start: e164, end: e164 })],
  ] as const) {
    const refusals = await Promise.all(
      [foreign, absent].map(async e164 => {
        const { status, body } = await post(w, path, bodyOf(e164))
        return { status, code: body.code, detail: body.detail.replaceAll(e164, 'the number') }
      }),
    )
    t.match(refusals[0], { status: 404, code: 'not_found' }, path)
    t.same(refusals[0], refusals[1], path)
  }
})

t.test('the second route of a number is of its project, beside a trunk, and goes when the number does', async t => {
  const w = await controlPlane(t)
  const rival = asTenant(w, await addTenant(w.state, w.settings.master_key, ['+2342017770009']))
  const [own, theirs] = [await family(w), await family(rival)]
  const other = (await post(w, '/v1/trunks', { ...TRUNK, name: 'Second site' })).body.trunk.id
  const { data } = (await w.ask('GET', '/v1/numbers?limit=1')).body
  const path = `/v1/numbers/${data[0].id}`
  const route = async (body: object) => {
    const { headers } = await w.ask('GET', path)
    return w.ask('PUT', `${path}/route`, { body, headers: { 'If-Match': headers.get('etag') ?? '' } })
  }
  const first = { kind: 'trunk', id: own.trunk_id }
  const refused = (pointer: string) => ({ status: 422, body: { errors: [{ pointer }] } })
  for (const id of [theirs.trunk_id, 'trk_nothing'])
    t.match(await route({ ...first, fallback: { kind: 'trunk', id } }), refused('/fallback/id'))
  t.match(await route({ ...first, fallback: first }), refused('/fallback/id'), 'the route itself')
  const application = await post(w, '/v1/voice/applications', {
    ...{ name: 'Desk', voice_url: 'https://app.example.com/', voice_method: 'POST' },
  })
  const to_application = { kind: 'voice_application', id: application.body.id }
  t.match(
    await route({ ...to_application, fallback: first }),
    refused('/fallback'),
    'an application has a fallback URL',
  )

  const second = { kind: 'trunk', id: other, name: 'Second site' }
  t.match(await route({ ...first, fallback: { kind: 'trunk', id: other } }), {
    status: 200,
    body: { fallback: second },
  })
  t.match(await route({ kind: 'subtrunk', id: own.id }), { body: { fallback: second } }, 'it stays unless it is named')
  t.match(await route({ ...first, fallback: null }), { body: { fallback: null } })
  await route({ ...first, fallback: to_application })
  t.match(await route(to_application), { body: { fallback: null } }, 'nothing falls back from an application')
  await route({ ...first, fallback: { kind: 'trunk', id: other } })
  const { headers } = await w.ask('GET', path)
  t.match(await post(w, `${path}/release`, {}, headers.get('etag') ?? ''), { body: { route: null, fallback: null } })
})
