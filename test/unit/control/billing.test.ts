import { inflateSync } from 'node:zlib'
import { statementPdf } from '../../../control/billing/statement-pdf.ts'
import { auditEvents } from '../../../control/reconcilers/audit-events.ts'
import { numberCharges } from '../../../control/reconcilers/number-charges.ts'
import { recordingRetention, recordingSealing } from '../../../control/reconcilers/recordings.ts'
import { retentionJobs } from '../../../control/reconcilers/retention-jobs.ts'
import { statements } from '../../../control/reconcilers/statements.ts'
import {
  daysOf,
  moneyText,
  periodsBefore,
  type Statement,
  statementCsv,
} from '../../../core/domain/billing/statement.ts'
import { EVENT_KINDS } from '../../../core/domain/webhooks/kinds.ts'
import { iso, systemClock } from '../../../core/runtime/clock.ts'
import { stockNumbers } from '../../../core/state/configuration/numbers.ts'
import { reportApplied } from '../../../core/state/configuration/snapshot.ts'
import { brokenInvariants } from '../../../core/state/maintenance/invariants.ts'
import { readBill } from '../../../core/state/money/billing.ts'
import { chargeNumbers } from '../../../core/state/money/number-charges.ts'
import { adjustBalance, putBillingAccount } from '../../../core/state/money/rates.ts'
import { registerNode } from '../../../core/state/nodes/nodes.ts'
import { type Charge, chargedCall } from '../../support/charges.ts'
import { standingClock } from '../../support/clock.ts'
import { type ControlPlane, controlPlane, freshKey, openSandbox } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { MACHINE } from '../../support/machine.ts'
import { addRecording } from '../../support/recordings.ts'

const telling = auditEvents()

/** Africa/Lagos is an hour ahead of UTC all year round. */
const START_MS = Date.parse('2026-03-15T12:00:00.000Z')

t.test('statement periods are calendar months across years, and amounts print with their currency', async t => {
  t.same(daysOf('2028-02'), { from: '2028-02-01', to: '2028-02-29' })
  t.same(periodsBefore('2026-11-30', '2027-02-01'), ['2026-11', '2026-12', '2027-01'])
  t.same(periodsBefore('2026-11-01', '2026-11-30'), [])
  t.equal(moneyText(123_456_789, 'NGN'), 'NGN 1,234,567.89')
  t.equal(moneyText(-5, 'NGN'), '-NGN 0.05')
  t.equal(moneyText(100_000, 'NGN'), 'NGN 1,000.00')
})

t.test('balance, usage and statements add up charges and payments', async t => {
  let now_ms = START_MS
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
  const services = { ...w }
  const project = await w.state.db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const { body: trunk } = await w.ask('POST', '/v1/trunks', {
    body: trunkBody('Head office'),
    headers: { 'Idempotency-Key': freshKey() },
  })
  const trunk_id = trunk.trunk.id as string

  const bare = await w.ask('GET', '/v1/billing/balance')
  t.match(bare.body, { prepaid: false, balance_minor: 0, available_minor: null, currency: 'NGN' })
  await w.state.transaction(async trx => {
    const account = {
      id: project.billing_account_id,
      name: 'Main',
      currency: 'NGN',
      prepaid: 1,
      credit_minor: 500,
    } as const
    await putBillingAccount(trx, account)
    const change = {
      id: account.id,
      kind: 'top_up',
      amount_minor: 100_000,
      note: 'Bank transfer',
      now: iso(now_ms),
    } as const
    await adjustBalance(trx, change)
  })
  const filled = await w.ask('GET', '/v1/billing/balance')
  t.match(filled.body, { prepaid: true, balance_minor: 100_000, credit_minor: 500, available_minor: 100_500 })

  await addCharge(w, { day: '2026-03-01', trunk_id, label: 'Nigeria mobile', charge_minor: 250, seconds: 60 })
  await addCharge(w, { day: '2026-03-01', trunk_id, label: 'Nigeria mobile', charge_minor: 50, seconds: 12 })
  await addCharge(w, { day: '2026-03-10', trunk_id: null, label: 'Ghana', charge_minor: 900, seconds: 120 })
  await addCharge(w, { day: '2026-03-12', trunk_id, label: 'Ghana', charge_minor: null, seconds: 0 })

  const { call_sid } = await w.state.db
    .selectFrom('reservation')
    .select('call_sid')
    .where('charge_minor', '=', 900)
    .executeTakeFirstOrThrow()
  const caps = JSON.stringify([['project', project.id, 5000, null]])
  await w.state.db
    .updateTable('reservation')
    .set({ caps, rate_micro: 450_000_000, increment_initial_seconds: 60, increment_additional_seconds: 60 })
    .where('call_sid', '=', call_sid)
    .execute()
  t.match((await w.ask('GET', `/v1/calls/${call_sid}`)).body.price, {
    ...{ amount_minor: 900, billed_seconds: 120, currency: 'NGN', direction: 'outbound' },
    sentence: '120 s × ₦4.50/min = ₦9.00',
  })
  const decision = await w.ask('GET', `/v1/calls/${call_sid}/decision`)
  const level = { level: 'project', id: project.id, daily_spend_cap_minor: 5000, velocity_cap_minor: null }
  t.same(decision.body.price.caps, [level], 'caps are values, not text')

  const days = await w.ask('GET', '/v1/billing/usage?from=2026-03-01&to=2026-03-31')
  t.same(
    days.body.data.map((line: { day: string; settled_spend_minor: number }) => [line.day, line.settled_spend_minor]),
    [
      ['2026-03-01', 300],
      ['2026-03-10', 900],
      ['2026-03-12', 0],
    ],
  )
  t.match(days.body.total, { calls: 4, settled_spend_minor: 1200, pending_spend_minor: 77, billed_seconds: 192 })
  const trunks = await w.ask('GET', '/v1/billing/usage?from=2026-03-01&to=2026-03-31&group_by=trunk')
  t.same(
    trunks.body.data.map((line: { trunk_name: string | null; calls: number }) => [line.trunk_name, line.calls]),
    [
      [null, 1],
      ['Head office', 3],
    ],
  )
  const ghana = await w.ask('GET', `/v1/billing/usage?group_by=destination&trunk_id=${trunk_id}&from=2026-03-11`)
  t.match(ghana.body.data, [{ destination: 'Ghana', calls: 1, pending_spend_minor: 77 }])
  t.equal(ghana.body.to, '2026-03-15', 'the range ends today when `to` is omitted')
  for (const query of [
    'from=2026-03-02&to=2026-03-01',
    'from=2020-01-01&to=2026-01-01',
    'from=2026-02-30',
    'group_by=x',
  ])
    t.equal((await w.ask('GET', `/v1/billing/usage?${query}`)).status, 422, query)

  const open = await w.ask('GET', '/v1/billing/documents')
  t.match(open.body.data, [{ id: 'stm_2026-03', status: 'open', issued_at: null, charges_minor: 1200 }])
  await statements.run(services)
  t.equal(
    (await w.ask('GET', '/v1/billing/documents')).body.data.length,
    1,
    'no statement is issued before the month ends',
  )

  now_ms = Date.parse('2026-03-31T23:30:00.000Z')
  await statements.run(services)
  t.match(
    (await w.ask('GET', '/v1/billing/documents/stm_2026-03')).body,
    { status: 'open', issued_at: null, charges_minor: 1200 },
    'it is April in Lagos, but a call of March is not settled yet',
  )
  t.match(
    (await w.ask('GET', '/v1/billing/documents')).body.data,
    [
      { id: 'stm_2026-04', status: 'open', charges_minor: 0 },
      { id: 'stm_2026-03', status: 'open', issued_at: null, charges_minor: 1200 },
    ],
    'the list has the month that has ended',
  )
  const late = await w.state.db
    .updateTable('reservation')
    .set({ settled_at: '2026-03-31T22:59:00.000Z', held_minor: 0, charge_minor: 30 })
    .where('settled_at', 'is', null)
    .returning('call_sid')
    .executeTakeFirstOrThrow()
  await bookCharge(w, late.call_sid, 30, '2026-03-31T22:59:00.000Z')
  await statements.run(services)
  const issued = await w.ask('GET', '/v1/billing/documents/stm_2026-03')
  t.match(issued.body, {
    status: 'issued',
    calls: 4,
    charges_minor: 1230,
    payments_minor: 100_000,
    opening_balance_minor: null,
    closing_balance_minor: 98_770,
    payments: [{ kind: 'top_up', amount_minor: 100_000, note: 'Bank transfer' }],
  })
  const balance = async () => (await w.ask('GET', '/v1/billing/balance')).body.balance_minor
  t.equal(await balance(), 98_770)
  // Written late, as the last call of a lost node is: with a time before the end of March.
  await addCharge(w, { day: '2026-03-20', trunk_id, label: 'Ghana', charge_minor: 5, seconds: 6 })
  await statements.run(services)
  t.same(
    (await w.ask('GET', '/v1/billing/documents/stm_2026-03')).body,
    issued.body,
    'an issued statement never changes',
  )
  const listed = await w.ask('GET', '/v1/billing/documents')
  t.same(
    listed.body.data.map((one: { id: string; status: string }) => [one.id, one.status]),
    [
      ['stm_2026-04', 'open'],
      ['stm_2026-03', 'issued'],
    ],
  )

  const april = await w.ask('GET', '/v1/billing/documents/stm_2026-04')
  const of_april = { opening_balance_minor: 98_770, charges_minor: 5, closing_balance_minor: 98_765 }
  t.match(april.body, of_april, 'a line that came late is in the next statement')
  t.equal(await balance(), 98_765, 'statements tile the ledger')
  const csv = await fetch(`${w.base_url}${issued.body.csv_href}`, { headers: { Authorization: `Bearer ${w.key}` } })
  t.match(csv.headers.get('content-type'), /^text\/csv/)
  const rows = (await csv.text()).trim().split('\n').slice(1)
  const cells = rows.map(line => line.split(','))
  const sum = cells
    .filter(([section = '']) => !['closing', 'by trunk'].includes(section))
    .reduce((total, line) => total + Number(line.at(-1)), 0)
  t.equal(sum, 98_770, 'opening, charges and payments add up')
  t.equal(cells.find(([section]) => section === 'closing')?.at(-1), '98770')
  t.ok(rows.includes('destination,Nigeria mobile,2,72,-300'), rows.join('\n'))

  const pdf = await fetch(`${w.base_url}${issued.body.pdf_href}`, { headers: { Authorization: `Bearer ${w.key}` } })
  t.equal(pdf.status, 200)
  t.equal(pdf.headers.get('content-type'), 'application/pdf')
  const bytes = Buffer.from(await pdf.arrayBuffer())
  t.equal(Number(pdf.headers.get('content-length')), bytes.length)
  const text = textOfPdf(bytes)
  for (const part of ['Statement', 'stm_2026-03', 'Nigeria mobile', 'Head office', 'NGN 12.30', 'Bank transfer'])
    t.ok(text.includes(part), `the page contains ${part}`)
  for (const id of ['stm_2026-02', 'stm_2030-01', 'stm_2026-13', 'x', '%00'])
    t.equal((await w.ask('GET', `/v1/billing/documents/${id}`)).status, 404, id)
})

t.test('a month of a number is charged once, in the ledger, to the project that holds it', async t => {
  let now_ms = START_MS
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => now_ms } })
  const { db } = w.state
  const [e164 = ''] = w.demo.numbers
  await db.updateTable('number').set({ monthly_minor: 50_000 }).where('e164', '=', e164).execute()
  const lines = async () =>
    (await db.selectFrom('ledger').selectAll().where('kind', '=', 'number').execute()).map(row => [
      row.note,
      row.amount_minor,
      row.project_id,
    ])
  const account = () => db.selectFrom('billing_account').selectAll().executeTakeFirstOrThrow()
  t.equal(await chargeNumbers(w.state, now_ms), 0, 'the sandbox is free')
  await db.updateTable('project').set({ sandbox: 0 }).execute()
  const before = (await account()).balance_minor
  // Two processes at once, and again after a kill.
  const charged = await Promise.all([chargeNumbers(w.state, now_ms), chargeNumbers(w.state, now_ms)])
  t.equal(
    charged.reduce((sum, count) => sum + count, 0),
    1,
  )
  await numberCharges.run(w)
  t.same(await lines(), [[`${e164}, 2026-03`, -50_000, w.demo.project_id]])
  t.equal((await account()).balance_minor, before - 50_000)
  // April begins in Lagos an hour before it does in UTC.
  now_ms = Date.parse('2026-03-31T23:00:00.000Z')
  await numberCharges.run(w)
  t.equal((await lines()).length, 2)
  await db.updateTable('number').set({ status: 'quarantined', project_id: null }).where('e164', '=', e164).execute()
  now_ms = Date.parse('2026-05-15T00:00:00.000Z')
  await numberCharges.run(w)
  t.equal((await lines()).length, 2, 'a number that was given back costs nothing')
  t.equal((await account()).balance_minor, before - 100_000)
  t.same(await brokenInvariants(db), [])
  const march = (await w.ask('GET', '/v1/billing/documents/stm_2026-05')).body
  t.match(march, { charges_minor: 0, opening_balance_minor: before - 100_000 })
})

t.test('an order of numbers is bounded by how many a project holds and by its balance', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const now = iso(Date.now())
  const stock = Array.from({ length: 100 }, (_, at) => `+2342019990${String(at).padStart(3, '0')}`)
  t.same(await w.state.transaction(trx => stockNumbers(trx, stock, 500, now)), [])
  const order = (numbers: readonly string[]) =>
    w.ask('POST', '/v1/number-orders', { body: { numbers }, headers: { 'Idempotency-Key': freshKey() } })
  const taken = async () =>
    (await db.selectFrom('number').select('id').where('monthly_minor', '=', 500).where('status', '=', 'held').execute())
      .length
  t.match(await order(stock), { status: 409, body: { code: 'number_limit' } })
  const { billing_account_id: id } = await db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  await db.updateTable('project').set({ sandbox: 0 }).execute()
  await w.state.transaction(async trx => {
    await putBillingAccount(trx, { id, name: 'Main', currency: 'NGN', prepaid: 1, credit_minor: 0 })
    await adjustBalance(trx, { id, kind: 'top_up', amount_minor: 999, note: null, now })
  })
  t.match(await order(stock.slice(0, 2)), { status: 409, body: { code: 'order_unaffordable' } })
  t.equal(await taken(), 0)
  t.equal((await order(stock.slice(0, 1))).status, 201)
  t.equal(await taken(), 1)
  t.match(await order(stock.slice(1, 2)), { status: 409, body: { code: 'order_unaffordable' } }, 'the first is due')
  await numberCharges.run(w)
  t.match(await order(stock.slice(1, 2)), { status: 409, body: { code: 'order_unaffordable' } }, 'the first is paid')
  await w.state.transaction(trx => adjustBalance(trx, { id, kind: 'top_up', amount_minor: 501, note: null, now }))
  const both = await Promise.all([order(stock.slice(1, 2)), order(stock.slice(2, 3)), order(stock.slice(3, 4))])
  t.same(both.map(({ status }) => status).sort(), [201, 201, 409], 'of three at once, 1000 pay for two')
  await numberCharges.run(w)
  const { balance_minor } = await db.selectFrom('billing_account').selectAll().executeTakeFirstOrThrow()
  t.equal(balance_minor, 0)
})

t.test(
  'who orders numbers and gives them back at once pays for their month, and does not use up the inventory',
  async t => {
    const w = await controlPlane(t)
    const { db } = w.state
    const stock = Array.from({ length: 130 }, (_, at) => `+2342019991${String(at).padStart(3, '0')}`)
    await w.state.transaction(trx => stockNumbers(trx, stock, 500, iso(Date.now())))
    const order = (numbers: readonly string[]) =>
      w.ask('POST', '/v1/number-orders', { body: { numbers }, headers: { 'Idempotency-Key': freshKey() } })
    const giveBack = async ({ body }: Awaited<ReturnType<typeof order>>) => {
      for (const { id, revision } of body.numbers)
        await w.ask('POST', `/v1/numbers/${id}/release`, {
          headers: { 'If-Match': `"${revision}"`, 'Idempotency-Key': freshKey() },
        })
    }
    const inventory = async () =>
      (await db.selectFrom('number').select('id').where('status', '=', 'available').execute()).length
    await giveBack(await order(stock.slice(0, 80)))
    t.match(await order(stock.slice(80)), { status: 409, body: { code: 'number_limit' } }, 'ten of the demo, and 80')
    t.equal(await inventory(), 50, 'a customer in the sandbox empties no inventory')

    const { billing_account_id: id } = await db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
    await db.updateTable('project').set({ sandbox: 0 }).execute()
    await w.state.transaction(async trx => {
      await putBillingAccount(trx, { id, name: 'Main', currency: 'NGN', prepaid: 1, credit_minor: 0 })
      await adjustBalance(trx, { id, kind: 'top_up', amount_minor: 1200, note: null, now: iso(Date.now()) })
    })
    const paid = await order(stock.slice(80, 82))
    t.equal(paid.status, 201)
    await giveBack(paid)
    const balance = async () =>
      (await db.selectFrom('billing_account').selectAll().executeTakeFirstOrThrow()).balance_minor
    t.equal(await balance(), 200, 'both months are paid')
    await numberCharges.run(w)
    t.equal(await balance(), 200, 'once')
    t.same(await brokenInvariants(db), [])
  },
)

t.test('the first statement of a project that shares an old account leaves the lines before it alone', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const project = await db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const organization = await db.selectFrom('organization').selectAll().executeTakeFirstOrThrow()
  const { billing_account_id: id } = project
  await w.state.transaction(async trx => {
    await putBillingAccount(trx, { id, name: 'Shared', currency: 'NGN', prepaid: 1, credit_minor: 0 })
    const now = '2026-01-15T12:00:00.000Z'
    await adjustBalance(trx, { id, kind: 'top_up', amount_minor: 1000, note: 'of another project', now })
  })
  const february = await readBill(db, project, organization, '2026-02')
  const march = await readBill(db, project, organization, '2026-03', february)
  t.same(march.payments, [], 'January’s payment is not March’s')
  t.match(march, { opening_balance_minor: 1000, closing_balance_minor: 1000, payments_minor: 0, others_minor: 0 })
})

t.test('an organization that moves to another time zone has each line of the ledger in one statement', async t => {
  const w = await controlPlane(t)
  const { db } = w.state
  const project = await db.selectFrom('project').selectAll().executeTakeFirstOrThrow()
  const organization = await db.selectFrom('organization').selectAll().executeTakeFirstOrThrow()
  const { billing_account_id: id } = project
  const topUp = (now: string, amount_minor: number) =>
    w.state.transaction(trx => adjustBalance(trx, { id, kind: 'top_up', amount_minor, note: null, now }))
  const bill = (period: string, time_zone: string, before?: Statement) =>
    readBill(db, project, { ...organization, time_zone }, period, before)
  // The second is written late. In UTC, April begins at 15:00 in Tokyo, at 23:00 in Lagos, and at 04:00 in New York.
  await topUp('2026-03-31T20:00:00.000Z', 100)
  await topUp('2026-03-31T14:00:00.000Z', 10)
  await topUp('2026-03-31T23:30:00.000Z', 1)
  for (const [march, april, split] of [
    ['America/New_York', 'Asia/Tokyo', [111, 0]],
    ['Asia/Tokyo', 'America/New_York', [10, 101]],
    ['Africa/Lagos', 'Africa/Lagos', [110, 1]],
  ] as const) {
    const one = await bill('2026-03', march)
    const next = await bill('2026-04', april, one)
    t.same([one.payments_minor, next.payments_minor], split, `${march}, then ${april}`)
    t.equal(next.opening_balance_minor, one.closing_balance_minor)
    t.equal(next.closing_balance_minor, 111)
  }
  const april = await bill('2026-04', 'Africa/Lagos', await bill('2026-03', 'Africa/Lagos'))
  t.match(statementCsv(april), /^top-up,2026-04-01,,,1$/m, 'its days are those of the time zone')
  const pdf = textOfPdf(await statementPdf(april, { id: 'stm_2026-04', issued_at: '2026-04-30T23:10:00.000Z' }))
  t.ok(pdf.includes('2026-04-01  Top-up'), pdf)
  t.ok(pdf.includes('2026-05-01'), 'and it is issued when the month is over')
})

t.test('a long statement spans several pages, and rendering it again gives the same bytes', async t => {
  const line = (n: number) => ({
    id: null,
    label: `Destination ${n} \u4e2d`,
    calls: n,
    billed_seconds: 60,
    charge_minor: n,
  })
  const statement: Statement = {
    ...daysOf('2026-03'),
    ...{ kind: 'statement', numbers: [], others_minor: 0, last_position: 0, time_zone: 'Africa/Lagos' },
    period: '2026-03',
    currency: 'NGN',
    organization_name: 'Émile & Söhne',
    project_id: 'prj_x',
    project_name: 'Main',
    billing_account_id: 'bil_x',
    destinations: Array.from({ length: 200 }, (_, n) => line(n)),
    trunks: [],
    payments: [],
    calls: 1,
    billed_seconds: 60,
    charges_minor: 1,
    payments_minor: 0,
    opening_balance_minor: null,
    closing_balance_minor: -5,
  }
  const one = await statementPdf(statement, { id: 'stm_2026-03', issued_at: '2026-04-01T00:00:00.000Z' })
  const pages = one.toString('latin1').match(/\/Type \/Page\b/g) ?? []
  t.ok(pages.length >= 4, `${pages.length} pages`)
  t.ok(textOfPdf(one).includes('Destination 199 ?'), 'a character that the fonts lack becomes a question mark')
  t.same(await statementPdf(statement, { id: 'stm_2026-03', issued_at: '2026-04-01T00:00:00.000Z' }), one)
})

t.test('retention is set for one recording, or for all of them by a job that reports progress', async t => {
  const w = await controlPlane(t)
  const sids: string[] = []
  const call = await placeCall(w)
  for (let n = 0; n < 205; n += 1) sids.push(await addRecording(w, call))
  const [first = ''] = sids
  await recordingRetention.run(w)
  const kept = await w.ask('PUT', `/v1/recordings/${first}/retention`, { body: { retention_days: 90 } })
  t.equal(kept.status, 200, kept.text)
  t.equal(Date.parse(kept.body.expires_at) - Date.parse(kept.body.created_at), 90 * 86_400_000)
  const job = await w.ask('POST', '/v1/recordings/retention-jobs', {
    body: { retention_days: 30 },
    headers: { 'Idempotency-Key': freshKey() },
  })
  t.match(job.body, { state: 'running', total: 205, done: 0 })
  await retentionJobs.run(w)
  const done = await w.ask('GET', `/v1/recordings/retention-jobs/${job.body.id}`)
  t.match(done.body, { state: 'completed', total: 205, done: 205 })
  for (const sid of [first, sids.at(-1) ?? '']) {
    const { body } = await w.ask('GET', `/v1/recordings/${sid}`)
    t.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), 30 * 86_400_000)
  }
  const running = await addRecording(w, call, 'in-progress')
  const early = await w.ask('PUT', `/v1/recordings/${running}/retention`, { body: { retention_days: 30 } })
  t.equal(early.body.code, 'state_conflict', 'the retention of a running recording cannot be changed')
  const odd = await w.ask('PUT', `/v1/recordings/${first}/retention`, { body: { retention_days: 31 } })
  t.equal(odd.status, 422)
})

t.test('webhook endpoints receive events about trunks, numbers and recordings', async t => {
  // The node of this test has no process that renews its heartbeat.
  const w = await controlPlane(t, { clock: standingClock() })
  const write = (method: string, path: string, body: unknown, etag?: string) =>
    w.ask(method, path, { body, headers: { 'Idempotency-Key': freshKey(), ...(etag ? { 'If-Match': etag } : {}) } })
  await write('POST', '/v1/trunks', trunkBody('Before'))
  await telling.run(w)
  await write('POST', '/v1/webhook-endpoints', {
    url: 'https://app.example.com/hook',
    event_kinds: EVENT_KINDS.filter(kind => !kind.startsWith('call.')),
  })
  const created = await write('POST', '/v1/trunks', trunkBody('After'))
  const trunk_id = created.body.trunk.id as string
  await write('POST', `/v1/trunks/${trunk_id}/suspend`, undefined, created.headers.get('etag') ?? '')
  const { body: numbers } = await w.ask('GET', '/v1/numbers')
  const [number] = numbers.data
  await write('PUT', `/v1/numbers/${number.id}/route`, { kind: 'trunk', id: trunk_id }, `"${number.revision}"`)
  await telling.run(w)
  t.same(
    await kinds(w),
    ['trunk.created', 'trunk.updated', 'number.routed'],
    'changes before the endpoint existed are not sent',
  )
  await telling.run(w)
  t.equal((await kinds(w)).length, 3, 'no event is queued twice')

  await registerNode(w.state.db, { id: 'node_1', kind: 'signaling', ...MACHINE, pid: 1 }, w.clock.now())
  const applied = { resource_id: trunk_id, revision: 2, state: 'applied', error: null } as const
  await reportApplied(w.state, 'node_1', [applied], w.clock.now())
  await telling.run(w)
  t.same((await kinds(w)).slice(3), ['trunk.applied'], 'one event when the newest revision is applied')
  const update = await write('POST', `/v1/trunks/${trunk_id}/resume`, undefined, '"2"')
  t.equal(update.status, 200)
  const failed = { resource_id: trunk_id, revision: 3, state: 'failed', error: 'no such host' } as const
  await reportApplied(w.state, 'node_1', [failed], w.clock.now())
  await telling.run(w)
  await telling.run(w)
  t.same((await kinds(w)).slice(4), ['trunk.updated', 'trunk.apply_failed'])

  const sid = await addRecording(w, await placeCall(w))
  await recordingSealing.run(w)
  await recordingSealing.run(w)
  await w.ask('DELETE', `/v1/recordings/${sid}`)
  await telling.run(w)
  t.same((await kinds(w)).slice(6), ['recording.completed', 'recording.deleted'])
  const rows = await w.state.db.selectFrom('webhook_delivery').selectAll().execute()
  t.equal(new Set(rows.map(row => row.event_id)).size, rows.length, 'every event has its own id')
  const told = JSON.parse(rows.find(row => row.event_kind === 'trunk.apply_failed')?.payload ?? '{}')
  t.match(told, { kind: 'trunk.apply_failed', data: { id: trunk_id, error: 'no such host', revision: 3 } })
})

const kinds = async (w: ControlPlane): Promise<string[]> =>
  (await w.state.db.selectFrom('webhook_delivery').select('event_kind').orderBy('position').execute()).map(
    row => row.event_kind,
  )

async function placeCall(w: ControlPlane): Promise<string> {
  await openSandbox(w)
  const form = { To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
  const { body, status, text } = await w.voice('POST', '/Calls.json', form)
  if (status !== 201) throw new Error(text)
  return body.sid
}

let ranges = 0
const trunkBody = (name: string) => ({
  name,
  direction: 'both',
  auth_mode: 'ip_allow_list',
  sources: [`10.9.${++ranges}.0/24`],
  targets: [],
  codecs: ['PCMA'],
  media_security: 'rtp',
  require_tls: false,
  source_validation: 'relaxed',
})

async function addCharge(w: ControlPlane, charge: Charge): Promise<void> {
  const sid = await chargedCall(w, charge)
  const { day, charge_minor } = charge
  if (charge_minor !== null) await bookCharge(w, sid, charge_minor, `${day}T09:00:00.000Z`)
}

/** Books the charge of a call, as its end does. */
async function bookCharge(w: ControlPlane, call_sid: string, charge_minor: number, at: string): Promise<void> {
  await w.state.transaction(async trx => {
    const { billing_account_id } = await trx.selectFrom('project').selectAll().executeTakeFirstOrThrow()
    const { balance_minor } = await trx
      .updateTable('billing_account')
      .set(eb => ({ balance_minor: eb('balance_minor', '-', charge_minor) }))
      .where('id', '=', billing_account_id)
      .returningAll()
      .executeTakeFirstOrThrow()
    await trx
      .insertInto('ledger')
      .values({
        ...{ billing_account_id, project_id: w.demo.project_id, kind: 'charge', amount_minor: -charge_minor },
        ...{ balance_after_minor: balance_minor, call_sid, note: null, reference: null, at },
      })
      .execute()
  })
}

/** Extracts the text of a PDF. pdfkit writes it as hexadecimal strings, one byte for each character. */
function textOfPdf(bytes: Buffer): string {
  const latin = bytes.toString('latin1')
  const words: string[] = []
  for (const found of latin.matchAll(/stream\r?\n/g)) {
    const begin = found.index + found[0].length
    if (latin.slice(found.index - 3, found.index) === 'end') continue
    let page: string
    try {
      page = inflateSync(bytes.subarray(begin, latin.indexOf('endstream', begin))).toString('latin1')
    } catch {
      continue
    }
    for (const [, line = ''] of page.matchAll(/\[(.*?)\] TJ/g))
      words.push(
        [...line.matchAll(/<([0-9a-f]*)>/g)].map(([, hex = '']) => Buffer.from(hex, 'hex').toString('latin1')).join(''),
      )
  }
  return words.join('\n')
}
