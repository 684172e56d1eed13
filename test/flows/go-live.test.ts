import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROLE_SCOPES } from '../../control/http/access.ts'
import { type Agent, openAgent, place } from '../support/agents.ts'
import { strowger } from '../support/child.ts'
import { freshKey } from '../support/control-plane.ts'
import { onlyFirstStories } from '../support/engine.ts'
import t, { type Test } from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { callee, MANY, receive, sipp } from '../support/sipp.ts'
import { until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// An operator opens for business: a customer, a carrier, prices, costs, numbers and money. Then the customer's calls
// reach the carrier, and the books of both agree to the minor unit. The same story is told twice, on a platform whose
// data folder was empty: by /operator/v1 alone, and by the command line alone.

const list = (rate: number): string => `prefix,label,rate,unit,initial,additional\n234,Nigeria,${rate},minute,60,60\n`
const BOOKS = [
  { direction: 'outbound', price: 100, cost: 40 },
  { direction: 'inbound', price: 30, cost: 10 },
] as const
const dayAt = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
const SPAN = { from: dayAt(-1), to: dayAt(1) }

/** Who is opened for: a customer with one number, and the carrier's address. */
interface Business {
  readonly name: string
  readonly e164: string
  readonly carrier: { readonly ip: string; readonly port: number }
}

interface Opened {
  readonly project_id: string
  readonly carrier_id: string
  /** The link by which the customer's first member gets in. */
  readonly invitation: string
}

/** What an operator does, by one of the ways to do it. */
interface Desk {
  /** Opens for business, up to a closed checklist. The number is given to the customer, or offered to it alone. */
  open(business: Business): Promise<Opened & { readonly offered: boolean }>
  goLive(project_id: string): Promise<{ readonly open: readonly string[]; readonly sandbox: boolean }>
  topUp(project_id: string, minor: number): Promise<void>
  balance(project_id: string): Promise<object>
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes.
  margins(project_id: string, by: string): Promise<any>
  carrierTotal(carrier_id: string): Promise<object>
}

const contactOf = (name: string) => ({
  time_zone: 'Africa/Lagos',
  contact_email: `desk@${name.toLowerCase()}.example`,
})

/** The desk by /operator/v1, with a key. */
async function byApi(t: Test, w: World): Promise<Desk> {
  const made = await strowger(['operator', 'key', 'create', 'Desk', '--json'], { ...w.place }).ended
  const { operator_key } = JSON.parse(made.stdout)
  const ask = async (method: string, path: string, body?: object, etag?: string) => {
    const answer = await fetch(`${w.base_url}/operator/v1${path}`, {
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
  return {
    async open({ name, e164, carrier }) {
      const { project, invitation } = (await ask('POST', '/organizations', { name, ...contactOf(name) })).body
      const project_id: string = project.id
      const { body: telco } = await ask('POST', '/carriers', {
        ...{ name: `Telco of ${name}`, sources: [`${carrier.ip}/32`], routes: [{ prefix: '234', cost_minor: 999 }] },
        targets: [{ sip_uri: `sip:${carrier.ip}:${carrier.port}` }],
      })
      for (const { direction, price, cost } of BOOKS) {
        const book = { name: `November, ${direction}`, direction }
        await ask('POST', '/price-books/imports', { ...book, project_id, csv: list(price) })
        await ask('POST', '/cost-books/imports', { ...book, carrier_id: telco.id, csv: list(cost) })
      }
      const csv = `number,offered_to\n${e164},${project_id}\n`
      const { body: preview } = await ask('POST', '/number-imports', { name: 'Lagos', csv })
      await ask('POST', `/number-imports/${preview.id}/confirm`)
      await until('the number is in the inventory', async () => {
        const { body } = await ask('GET', `/number-imports/${preview.id}`)
        return body.state === 'completed'
      })
      return { project_id, carrier_id: telco.id, invitation: invitation.url, offered: true }
    },
    async topUp(project_id, amount_minor) {
      await ask('POST', `/projects/${project_id}/top-ups`, { amount_minor, reason: 'first payment' })
    },
    async goLive(project_id) {
      const { open } = (await ask('GET', `/projects/${project_id}/checklist`)).body
      const { etag } = await ask('GET', `/projects/${project_id}`)
      const { body } = await ask('POST', `/projects/${project_id}/go-live`, { reason: 'open' }, etag)
      return { open, sandbox: body.sandbox }
    },
    balance: async project_id => (await ask('GET', `/projects/${project_id}/balance`)).body,
    margins: async (project_id, group_by) =>
      (await ask('GET', `/margins?${new URLSearchParams({ ...SPAN, group_by, project_id })}`)).body,
    carrierTotal: async id => (await ask('GET', `/carriers/${id}/metrics?${new URLSearchParams(SPAN)}`)).body.total,
  }
}

/** The desk by the `strowger` command. */
function byCommand(t: Test, w: World): Desk {
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await strowger([...words, '--json'], { ...w.place }).ended
    t.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return JSON.parse(stdout)
  }
  const span = ['--from', SPAN.from, '--to', SPAN.to]
  return {
    async open({ name, e164, carrier }) {
      const { contact_email, time_zone } = contactOf(name)
      const whom = ['--email', contact_email, '--time-zone', time_zone]
      const { project, invitation } = await run('org', 'create', name, ...whom)
      const project_id: string = project.id
      const ways = ['--source', `${carrier.ip}/32`, '--target', `sip:${carrier.ip}:${carrier.port}`, '--route', '234']
      const { id: carrier_id } = await run('carriers', 'add', `Telco of ${name}`, ...ways)
      for (const { direction, price, cost } of BOOKS)
        for (const [command, rate, of] of [
          ['rates', price, ['--project', project_id]],
          ['costs', cost, ['--carrier', carrier_id]],
        ] as const) {
          const file = join(w.data_dir, `${command}-${direction}.csv`)
          writeFileSync(file, list(rate))
          await run(command, 'import', file, '--direction', direction, '--yes', ...of)
        }
      await run('numbers', 'add', e164)
      t.match(await run('numbers', 'assign', e164, project_id), { project_id, status: 'held' })
      return { project_id, carrier_id, invitation: invitation.url, offered: false }
    },
    async topUp(project_id, minor) {
      await run('balance', 'top-up', project_id, String(minor), '--reason', 'first payment')
    },
    async goLive(project_id) {
      const { open } = await run('project', 'checklist', project_id)
      const { sandbox } = await run('project', 'go-live', project_id, '--reason', 'open')
      return { open, sandbox }
    },
    balance: project_id => run('balance', 'show', project_id),
    margins: (project_id, by) => run('rates', 'margins', ...span, '--by', by, '--project', project_id),
    carrierTotal: async id => (await run('carriers', 'metrics', id, ...span)).total,
  }
}

/** The customer opens the link, signs in, and makes a credential of each kind. */
async function signedIn(t: Test, w: World, name: string, { project_id, invitation }: Opened, e164: string) {
  const { contact_email: email } = contactOf(name)
  const password = 'a password of their own'
  let session: Record<string, string> = {}
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${w.base_url}/console/api${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': freshKey(), ...session },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    t.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
    return { body: JSON.parse(text), cookie: answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '' }
  }
  const token = new URL(invitation).hash.slice(1)
  await ask('POST', '/invitations/accept', { token, password })
  const { body, cookie } = await ask('POST', '/session', { email, password })
  session = { Cookie: cookie, 'X-CSRF-Token': body.csrf_token }
  const role = 'org:admin'
  const made = await ask('POST', '/api-keys', { name: 'Office', role, scopes: [...ROLE_SCOPES[role]] })
  const { account, auth_token } = (await ask('POST', '/voice-account/auth-token/reveal')).body
  return w.as({
    project_id,
    account_sid: account.account_sid,
    auth_token,
    api_key: made.body.api_key,
    numbers: [e164],
  })
}

/** The carrier: a SIPp takes the calls that come to it, and an agent at its address places calls. */
async function openCarrier(t: Test, ip: string) {
  const steps = [
    receive.request('INVITE'),
    callee.respond(200, 'OK', { sdp: true }),
    receive.request('ACK'),
    receive.request('BYE'),
    callee.ok,
  ]
  const takes = await sipp(t, { steps, local_ip: ip, calls: MANY })
  return { ip, port: takes.port, taken: takes.calls, places: await openAgent(t, { ip }) }
}

/** A call of the customer's trunk, one of the carrier, and one of the API. Each reaches the other side. */
async function threeCalls(
  t: Test,
  customer: World,
  e164: string,
  { carrier, office }: { readonly carrier: Awaited<ReturnType<typeof openCarrier>>; readonly office: Agent },
) {
  const target = { sip_uri: `sip:${office.ip}:${office.port}`, transport: 'udp', priority: 1, weight: 1 }
  const trunk_id = await customer.addTrunk(office.ip, { targets: [target] })
  await customer.routeToTrunk(e164, trunk_id)
  const { sip } = customer
  const outbound = await place(office, `sip:+2348035550001@${sip.host}`, { to: sip, caller: e164 })
  t.equal(outbound.status, 200, 'the trunk’s call is answered')
  t.equal(carrier.taken().length, 1, 'by the carrier')
  outbound.call.hangUp()
  const inbound = await place(carrier.places, `sip:${e164}@${sip.host}`, { to: sip, caller: '+2348035550009' })
  t.equal(inbound.status, 200, 'the carrier’s call is answered')
  t.equal(office.invites.length, 1, 'by the office')
  inbound.call.hangUp()
  const form = { To: '+2348035550002', From: e164, Twiml: '<Response><Pause length="1"/></Response>' }
  const created = await customer.voice('POST', '/Calls.json', form)
  t.match(await customer.ended(created.body.sid), { status: 'completed' })
  t.equal(carrier.taken().length, 2, 'the call of the API reached the carrier')
}

async function story(
  t: Test,
  rival: World,
  desk: Desk,
  at: { readonly name: string; readonly e164: string; readonly net: string },
) {
  const { name, e164, net } = at
  const [carrier, office] = [await openCarrier(t, `${net}.1`), await openAgent(t, { ip: `${net}.2` })]
  const { offered, ...opened } = await desk.open({ name, e164, carrier })
  const { project_id, carrier_id } = opened
  const customer = await signedIn(t, rival, name, opened, e164)
  const order = (of: World) =>
    of.manage('POST', '/number-orders', { numbers: [e164] }, { 'idempotency-key': freshKey() })
  t.not((await order(rival)).status, 201, 'what is for one customer is nobody else’s')
  if (offered) t.equal((await order(customer)).status, 201)
  await desk.topUp(project_id, 10_000)
  t.same(await desk.goLive(project_id), { open: [], sandbox: false })

  await threeCalls(t, customer, e164, { carrier, office })
  const { db } = rival.state
  await until('all three calls are charged', async () => {
    const settled = db.selectFrom('reservation').select('call_sid').where('project_id', '=', project_id)
    return (await settled.where('settled_at', 'is not', null).execute()).length === 3
  })
  t.match(await desk.balance(project_id), { balance_minor: 10_000 - 100 - 30 - 100, held_minor: 0 })
  const sums = { calls: 3, charge_minor: 230, cost_minor: 90, margin_minor: 140 }
  t.match(await desk.margins(project_id, 'carrier'), { data: [{ key: carrier_id, ...sums }], total: sums })
  const calls = (await desk.margins(project_id, 'call')).data
  t.same(
    calls.map((row: { charge_minor: number; margin_minor: number }) => [row.charge_minor, row.margin_minor]),
    [
      [30, 20],
      [100, 60],
      [100, 60],
    ],
  )
  t.match(await desk.carrierTotal(carrier_id), {
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
  const theirs = new RegExp(`${name}|\\${e164}`)
  for (const path of ['/numbers', `/numbers/available?prefix=${e164.slice(1, 10)}`, '/audit', '/billing/balance']) {
    const { status, bytes } = await rival.manage('GET', path)
    t.equal(status, 200, path)
    t.notMatch(bytes.toString(), theirs, path)
  }
  const asOperator = await fetch(`${rival.base_url}/operator/v1/projects/${project_id}`, {
    headers: { Authorization: `Bearer ${customer.api_key}` },
  })
  t.equal(asOperator.status, 401, 'a customer is no operator')
}

t.test('a customer goes live by /operator/v1, is charged, and another customer sees nothing of it', async t => {
  const rival = await sharedWorld(t)
  await story(t, rival, await byApi(t, rival), { name: 'Couriers', e164: '+2342017770001', net: '127.77.0' })
})

if (!onlyFirstStories())
  t.test('a customer goes live by the command line, is charged, and another customer sees nothing of it', async t => {
    const rival = await sharedWorld(t)
    await story(t, rival, byCommand(t, rival), { name: 'Bakers', e164: '+2342018880001', net: '127.78.0' })
  })
