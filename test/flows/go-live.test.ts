import { unseal } from '../../core/runtime/secrets.ts'
import { addAdminKey } from '../../core/state/configuration/bootstrap.ts'
import { openAgent, place } from '../support/agents.ts'
import { strowger } from '../support/child.ts'
import { freshKey } from '../support/control-plane.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'

// An operator opens for business by /operator/v1 alone: a customer, a carrier, prices, costs, numbers and money. Then
// the customer's calls reach the carrier, and the books of both agree to the minor unit.

const CARRIER = '127.77.0.1'
const OFFICE = '127.77.0.2'
const list = (...lines: string[]): string => ['prefix,label,rate,unit,initial,additional', ...lines, ''].join('\n')
const dayAt = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)

t.test('a customer goes live by /operator/v1, is charged, and another customer sees nothing of it', async t => {
  const rival = await sharedWorld(t)
  const made = await strowger(['operator', 'key', 'create', 'Desk', '--json'], { STROWGER_DATA: rival.data_dir }).ended
  const { operator_key } = JSON.parse(made.stdout)
  const ask = async (method: string, path: string, body?: object, etag?: string) => {
    const answer = await fetch(`${rival.base_url}/operator/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${operator_key}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': freshKey(),
        ...(etag === undefined ? {} : { 'If-Match': etag }),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    t.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
    return { etag: answer.headers.get('etag') ?? '', body: text === '' ? undefined : JSON.parse(text) }
  }
  const carrier = await openAgent(t, { ip: CARRIER })
  const office = await openAgent(t, { ip: OFFICE })

  const contact = { time_zone: 'Africa/Lagos', contact_email: 'desk@couriers.example' }
  const { project } = (await ask('POST', '/organizations', { name: 'Couriers', ...contact })).body
  const project_id: string = project.id
  const { body: telco } = await ask('POST', '/carriers', {
    ...{ name: 'Telco', sources: [`${CARRIER}/32`], routes: [{ prefix: '234', cost_minor: 999 }] },
    targets: [{ sip_uri: `sip:${CARRIER}:${carrier.port}` }],
  })
  for (const [direction, price, cost] of [
    ['outbound', 100, 40],
    ['inbound', 30, 10],
  ] as const) {
    const name = `November, ${direction}`
    const rates = (rate: number) => list(`234,Nigeria,${rate},minute,60,60`)
    await ask('POST', '/price-books/imports', { name, direction, project_id, csv: rates(price) })
    await ask('POST', '/cost-books/imports', { name, direction, carrier_id: telco.id, csv: rates(cost) })
  }
  const e164 = '+2342017770001'
  const csv = `number,offered_to\n${e164},${project_id}\n`
  const { body: preview } = await ask('POST', '/number-imports', { name: 'Lagos', csv })
  await ask('POST', `/number-imports/${preview.id}/confirm`)
  await until('the number is in the inventory', async () => {
    const { body } = await ask('GET', `/number-imports/${preview.id}`)
    return body.state === 'completed'
  })

  const account = await rival.state.db
    .selectFrom('voice_account')
    .selectAll()
    .where('project_id', '=', project_id)
    .executeTakeFirstOrThrow()
  const customer = rival.as({
    project_id,
    account_sid: account.account_sid,
    auth_token: unseal(rival.master_key, account.auth_token_sealed),
    api_key: await addAdminKey(rival.state.db, project_id, new Date().toISOString(), null),
    numbers: [e164],
  })
  const order = (of: typeof customer) =>
    of.manage('POST', '/number-orders', { numbers: [e164] }, { 'idempotency-key': freshKey() })
  t.equal((await order(rival)).status, 404, 'what is offered to one customer is nobody else’s')
  t.equal((await order(customer)).status, 201)
  await ask('POST', `/projects/${project_id}/top-ups`, { amount_minor: 10_000, reason: 'first payment' })
  t.same((await ask('GET', `/projects/${project_id}/checklist`)).body.open, [])
  const { etag } = await ask('GET', `/projects/${project_id}`)
  t.equal((await ask('POST', `/projects/${project_id}/go-live`, { reason: 'open' }, etag)).body.sandbox, false)

  const target = { sip_uri: `sip:${OFFICE}:${office.port}`, transport: 'udp', priority: 1, weight: 1 }
  const trunk_id = await customer.addTrunk(OFFICE, { targets: [target] })
  await customer.routeToTrunk(e164, trunk_id)
  const { sip } = customer
  const outbound = await place(office, `sip:+2348035550001@${sip.host}`, { to: sip, caller: e164 })
  t.equal(outbound.status, 200, 'the trunk’s call is answered')
  t.equal(carrier.invites.length, 1, 'by the carrier')
  outbound.call.hangUp()
  const inbound = await place(carrier, `sip:${e164}@${sip.host}`, { to: sip, caller: '+2348035550009' })
  t.equal(inbound.status, 200, 'the carrier’s call is answered')
  t.equal(office.invites.length, 1, 'by the office')
  inbound.call.hangUp()
  const form = { To: '+2348035550002', From: e164, Twiml: '<Response><Pause length="1"/></Response>' }
  const created = await customer.voice('POST', '/Calls.json', form)
  t.match(await customer.ended(created.body.sid), { status: 'completed' })
  t.equal(carrier.invites.length, 2, 'the call of the API reached the carrier')

  const balance = async () => (await ask('GET', `/projects/${project_id}/balance`)).body
  await until('all three calls are charged', async () => (await balance()).balance_minor === 10_000 - 100 - 30 - 100)
  t.match(await balance(), { held_minor: 0 })
  const span = `from=${dayAt(-1)}&to=${dayAt(1)}`
  const margins = async (by: string) =>
    (await ask('GET', `/margins?${span}&group_by=${by}&project_id=${project_id}`)).body
  const sums = { calls: 3, charge_minor: 230, cost_minor: 90, margin_minor: 140 }
  t.match(await margins('carrier'), { data: [{ key: telco.id, ...sums }], total: sums })
  t.match(await margins('day'), { total: sums })
  const calls = (await margins('call')).data
  t.same(
    calls.map((row: { charge_minor: number; margin_minor: number }) => [row.charge_minor, row.margin_minor]),
    [
      [30, 20],
      [100, 60],
      [100, 60],
    ],
  )
  t.match((await ask('GET', `/carriers/${telco.id}/metrics?${span}`)).body.total, {
    ...{ attempts: 2, answered: 2, asr_pct: 100, charge_minor: 200, cost_minor: 80, margin_minor: 120 },
  })

  const own = (await customer.manage('GET', '/calls')).body.data.map(({ id }: { id: string }) => id)
  t.same([...own].sort(), calls.map(({ key }: { key: string }) => key).sort(), 'the customer sees its calls')
  for (const sid of own) {
    const { status, body } = await customer.manage('GET', `/calls/${sid}/decision`)
    t.equal(status, 200)
    t.notMatch(JSON.stringify(body), /cost_minor/, 'and not what the carrier takes')
    t.equal((await rival.manage('GET', `/calls/${sid}`)).status, 404)
  }
  t.same((await rival.manage('GET', '/calls')).body.data, [])
  for (const path of ['/numbers', '/numbers/available?prefix=234201777', '/audit', '/billing/balance']) {
    const { status, bytes } = await rival.manage('GET', path)
    t.equal(status, 200, path)
    t.notMatch(bytes.toString(), /Couriers|\+2342017770001|Telco/, path)
  }
  const theirs = await fetch(`${rival.base_url}/operator/v1/projects/${project_id}`, {
    headers: { Authorization: `Bearer ${customer.api_key}` },
  })
  t.equal(theirs.status, 401, 'a customer is no operator')
})
