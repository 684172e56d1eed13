import { numberImportTask } from '../../../../control/reconcilers/number-imports.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { INSTALLATION } from '../../../../core/state/people/audit.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, customer, operatorKey, trailOf } from '../../../support/operators.ts'

// Lists of numbers become inventory by a job, and offers say which customer may order them at which price.

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
let now_ms = Date.now()
const clock = { ...systemClock, now: () => now_ms }
const w = await controlPlane(t, { clock, rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))
const list = (...lines: string[]): string => ['number,monthly,offered_to', ...lines, ''].join('\n')
const stocked = async (prefix: string): Promise<[string, number, string][]> => {
  const { body } = await ask('GET', `/numbers?limit=1000&prefix=${encodeURIComponent(prefix)}`)
  return body.data.map((row: Record<string, unknown>) => [row['e164'], row['monthly_minor'], row['offered_to']])
}
const lines = async () => (await w.state.db.selectFrom('number_import_line').selectAll().execute()).length

t.test('a list is a preview until it is confirmed; then a job takes it, and what was known stays', async t => {
  await ask('POST', '/numbers', { first: '+2342010555001', monthly_minor: 7 })
  const csv = list('+2342010555001,900,', '2342010555002,900,nobody', "'+2342010555003,,all")
  const { status, body } = await ask('POST', '/number-imports', { name: 'Lagos', csv })
  t.match({ status, body }, { status: 201, body: { state: 'preview', total: 3, known: 1, done: 0, added: 0 } })
  t.same(
    body.lines.map((line: { e164: string }) => line.e164),
    ['+2342010555001', '+2342010555002', '+2342010555003'],
  )
  await numberImportTask.run(w)
  t.equal((await stocked('+2342010555')).length, 1, 'a preview adds nothing')
  const path = `/number-imports/${body.id}`
  t.match(await ask('POST', `${path}/confirm`), { status: 200, body: { state: 'running' } })
  await numberImportTask.run(w)
  t.match((await ask('GET', path)).body, { state: 'completed', total: 3, done: 3, added: 2, lines: [] })
  t.same(await stocked('+2342010555'), [
    ['+2342010555001', 7, 'all'],
    ['+2342010555002', 900, 'nobody'],
    ['+2342010555003', 0, 'all'],
  ])
  t.match(await ask('POST', `${path}/confirm`), { status: 409, body: { code: 'state_conflict' } })
  t.match(await ask('DELETE', path), { status: 409, body: { code: 'state_conflict' } })
  const told = (await trailOf(w, INSTALLATION)).map(({ action }) => action)
  t.same(told.slice(-2), ['number_import.previewed', 'number_import.confirmed'])
})

t.test('a long list goes on where a killed job stopped, and adds each number once', async t => {
  const csv = list(...Array.from({ length: 1201 }, (_, at) => `+23420107${String(at).padStart(5, '0')},,`))
  const { body } = await ask('POST', '/number-imports', { name: 'Many', csv })
  await ask('POST', `/number-imports/${body.id}/confirm`)
  const failing = { ...w.state, db: w.state.db, shortTransaction: async () => Promise.reject(new Error('killed')) }
  await t.rejects(numberImportTask.run({ ...w, state: failing as typeof w.state }))
  t.match((await ask('GET', `/number-imports/${body.id}`)).body, { state: 'running', done: 0 })
  await numberImportTask.run(w)
  t.match((await ask('GET', `/number-imports/${body.id}`)).body, { state: 'completed', done: 1201, added: 1201 })
  t.equal(await lines(), 0)
})

t.test('a list is refused with all its faults, and prices need the scope for money', async t => {
  const csv = list('+2342010888001,x,', '+2342010888002,1,everybody', '12,,', '+2342010888003,,', '+2342010888003,,')
  const { status, body } = await ask('POST', '/number-imports', { name: 'Faults', csv })
  t.equal(status, 422)
  t.same(
    body.errors.map(({ message }: { message: string }) => message.split(':')[0]),
    ['line 2', 'line 3', 'line 4', 'line 6'],
  )
  const unknown = await ask('POST', '/number-imports', { name: 'Unknown', csv: list('+2342010888001,,prj_none') })
  t.match(unknown, { status: 422, body: { errors: [{ message: /prj_none, which is no project/ }] } })
  const desk = asks(w, await operatorKey(w, { name: 'Desk', scopes: '["operator:read","operator:network"]' }))
  const priced = { name: 'Priced', csv: list('+2342010888001,5,') }
  t.match(await desk('POST', '/number-imports', priced), { status: 403, body: { code: 'scope_required' } })
  const made = await ask('POST', '/number-imports', priced)
  t.match(await desk('POST', `/number-imports/${made.body.id}/confirm`), { body: { code: 'scope_required' } })
  const free = await desk('POST', '/number-imports', { name: 'Free', csv: list('+2342010888009,,') })
  t.equal((await desk('DELETE', `/number-imports/${free.body.id}`)).status, 204)
  t.equal((await ask('GET', `/number-imports/${free.body.id}`)).status, 404)
  await numberImportTask.run(w)
  t.equal(await lines(), 1, 'the lines of a dropped preview are deleted')
  now_ms += 25 * 3_600_000
  await numberImportTask.run(w)
  t.equal((await ask('GET', `/number-imports/${made.body.id}`)).status, 404, 'a preview ends after a day')
  t.equal(await lines(), 0)
})

t.test('a customer sees and orders what is offered to it, and another customer does not', async t => {
  const rival = await customer(ask, 'Rival Ltd')
  const own = w.demo.project_id
  await ask('POST', '/numbers', { first: '+2342010999001', last: '+2342010999004' })
  const offer = (body: object) => ask('POST', '/number-offers', body)
  const range = { first: '+2342010999001', last: '+2342010999004' }
  t.match(await offer({ ...range, offered_to: 'nobody' }), { status: 200, body: { offered: 4 } })
  await offer({ first: '+2342010999001', offered_to: 'project', offered_project_id: own, monthly_minor: 30 })
  await offer({ first: '+2342010999002', offered_to: 'project', offered_project_id: rival.project_id })
  await offer({ first: '+2342010999003', offered_to: 'all', monthly_minor: 40 })
  const { body } = await w.ask('GET', '/v1/numbers/available?prefix=2342010999')
  t.same(
    body.data.map((row: { e164: string; monthly_minor: number }) => [row.e164, row.monthly_minor]),
    [
      ['+2342010999001', 30],
      ['+2342010999003', 40],
    ],
  )
  t.notOk('offered_project_id' in body.data[0], 'no customer is told who else gets offers')
  const order = (...numbers: string[]) =>
    w.ask('POST', '/v1/number-orders', { body: { numbers }, headers: { 'Idempotency-Key': freshKey() } })
  for (const number of ['+2342010999002', '+2342010999004'])
    t.match(await order(number), { status: 404, body: { code: 'not_found' } }, 'as one that nobody has')
  t.match(await order('+2342010999001', '+2342010999003'), { status: 201 })
  const offers = (await ask('GET', '/number-offers')).body.data
  t.match(
    offers.filter(({ first }: { first: string }) => first.startsWith('+2342010999')),
    [{ offered_to: 'project', offered_project_id: rival.project_id, monthly_minor: 0, numbers: 1 }],
    'with those that nobody may order, in one line with others of the kind',
  )
  t.match(await offer({ ...range, offered_to: 'all' }), { body: { offered: 2 } }, 'what is held stays as it is')
  t.match(await offer({ ...range, offered_to: 'project' }), { status: 422 })
  t.match(await offer({ ...range, offered_to: 'project', offered_project_id: 'prj_none' }), { status: 404 })
  t.match(await offer({ first: range.last, last: range.first, offered_to: 'all' }), { status: 422 })
  const theirs = (await trailOf(w, rival.organization_id)).at(-1)
  t.match(theirs, { action: 'numbers.offered', actor: 'operator Operator -' })
})
