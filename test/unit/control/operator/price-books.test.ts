import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../../../core/runtime/ids.ts'
import { takeAdmission } from '../../../../core/state/calls/leases.ts'
import { draftRates, dropOldDrafts } from '../../../../core/state/money/price-book-drafts.ts'
import { effectivePriceBook, lookupRate } from '../../../../core/state/money/rates.ts'
import { INSTALLATION } from '../../../../core/state/people/audit.ts'
import { runCommand } from '../../../support/command-line.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import { ranCall } from '../../../support/ended-calls.ts'
import t from '../../../support/harness/index.ts'
import { asks, customer, operatorKey, trailOf } from '../../../support/operators.ts'

// Price books by /operator/v1: the price that calls get afterwards, and what the audit trails say.

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))
const list = (...lines: string[]): string => ['prefix,label,rate,unit,initial,additional', ...lines, ''].join('\n')
const STANDARD = readFileSync('fixtures/rates/standard.csv', 'utf8')

const whole = { confirm_ended: true }

/** The price of a minute to a number, for calls of a project at a time; in minor units. */
async function price(project_id: string, digits: string, at = new Date().toISOString()): Promise<number | null> {
  const book = await effectivePriceBook(w.state.db, project_id, 'outbound', at)
  const rate = book && (await lookupRate(w.state.db, book.id, digits))
  return rate ? rate.rate_micro / 1_000_000 : null
}

t.test('a list is compared, imported, read, exported and imported again', async t => {
  const { project_id } = await customer(ask, 'Customer 1')
  const first = await ask('POST', '/price-books/diff', { csv: STANDARD })
  t.match(first, { status: 200, body: { against: null, added: 5, changed: 0, leaps: [] } })
  t.match(first.body.lines[0], /^\+ \+1 United States.*: ₦12\.00\/min, 60\/60$/)
  t.equal(await price(project_id, '2341234567'), null, 'a comparison stores nothing')
  const { status, body } = await ask('POST', '/price-books/imports', { name: 'Retail', csv: STANDARD })
  t.match({ status, body }, { status: 201, body: { project_id: null, currency: 'NGN', rates: 5, revision: 1 } })
  t.equal(await price(project_id, '2341234567'), 900)
  const rates: { prefix: string }[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const next: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page = await ask('GET', `/price-books/${body.id}/rates?limit=2${next}`)
    rates.push(...page.body.data)
    cursor = page.body.next_cursor
  }
  t.equal(new Set(rates.map(({ prefix }) => prefix)).size, 5)
  const { text, headers } = await ask('GET', `/price-books/${body.id}/export`)
  t.match(headers.get('content-type'), /^text\/csv/)
  t.match(await ask('POST', '/price-books/diff', { csv: text }), {
    body: { against: { id: body.id }, added: 0, changed: 0, ended: 0, same: 5 },
  })
})

t.test('a price that moves tenfold needs a confirmation; one that moves less does not', async t => {
  const { project_id } = await customer(ask, 'Customer 2')
  const before = await price(project_id, '2341234567')
  const wrong = list('234,Nigeria,90000,minute,1,1')
  t.match(await ask('POST', '/price-books/diff', { csv: wrong }), {
    body: { leaps: ['+234 Nigeria: ₦9.00/min to ₦900.00/min'] },
  })
  const refused = await ask('POST', '/price-books/imports', { name: 'Wrong', csv: wrong })
  t.match(refused, { status: 409, body: { code: 'price_leap' } })
  t.equal(await price(project_id, '2341234567'), before)
  for (const [rate, unit] of [
    ['90', 'minute'],
    ['0', 'minute'],
    ['150', 'second'],
  ])
    t.equal((await ask('POST', '/price-books/diff', { csv: list(`234,x,${rate},${unit},1,1`) })).body.leaps.length, 1)
  for (const [rate, unit] of [
    ['8999', 'minute'],
    ['15', 'second'],
    ['900', 'minute'],
  ])
    t.same((await ask('POST', '/price-books/diff', { csv: list(`234,x,${rate},${unit},1,1`) })).body.leaps, [])
})

t.test('a book of one project prices that project alone, from its time on', async t => {
  const { project_id, organization_id } = await customer(ask, 'Customer 3')
  const rival = await customer(ask, 'Customer 4')
  const csv = list('234,Nigeria,700,minute,1,1')
  const effective_from = new Date(Date.now() + 3_600_000).toISOString()
  const later = await ask('POST', '/price-books/imports', {
    name: 'Discount',
    csv,
    project_id,
    effective_from,
    ...whole,
  })
  t.equal(later.status, 201, later.text)
  t.equal(await price(project_id, '2341234567'), 900)
  t.equal(await price(project_id, '2341234567', effective_from), 700)
  t.equal(await price(rival.project_id, '2341234567', effective_from), 900)
  const trail = await trailOf(w, organization_id)
  t.match(trail.at(-1), { action: 'price_book.imported', actor: 'operator Operator -' })
  t.notMatch(JSON.stringify(trail), /Ada/, 'the customer’s trail does not name the operator')
  t.match((await trailOf(w, INSTALLATION)).at(-1), { action: 'price_book.imported', actor: /^operator Ada / })
  t.notMatch(JSON.stringify(await trailOf(w, rival.organization_id)), /price_book/)
})

t.test('a list with faults is refused with each line', async t => {
  const broken = readFileSync('fixtures/rates/broken.csv', 'utf8')
  const before = (await ask('GET', '/price-books')).body.data.length
  for (const path of ['/price-books/diff', '/price-books/imports']) {
    const name = path.endsWith('imports') ? { name: 'Broken' } : {}
    const { status, body } = await ask('POST', path, { ...name, csv: broken })
    t.equal(status, 422)
    const lines = body.errors.map(({ message }: { message: string }) => Number(/^line (\d+): /.exec(message)?.[1]))
    t.same(lines, [3, 4, 5, 6, 7, 8])
  }
  t.match(await ask('POST', '/price-books/diff', { csv: STANDARD, project_id: 'prj_none' }), { status: 404 })
  t.match(await ask('POST', '/price-books/diff', { csv: STANDARD, currency: 'USD' }), { status: 422 })
  t.equal((await ask('GET', '/price-books')).body.data.length, before)
})

t.test('a list of 100,000 prices is taken, and the state answers other requests meanwhile', async t => {
  const lines = Array.from(
    { length: 100_000 },
    (_, at) => `${100_000 + at},Prefix ${at},${(at % 900) + 100},minute,1,1`,
  )
  const csv = list(...lines)
  const importing = ask('POST', '/price-books/imports', { name: 'Wholesale', csv, direction: 'inbound' })
  t.match(await w.ask('GET', '/v1/trunks'), { status: 200 })
  let done = false
  const ended = importing.finally(() => {
    done = true
  })
  let written = 0
  // One transaction for the whole list would let through two of these at most.
  for (; !done; written++)
    await w.state.transaction(trx =>
      trx.updateTable('configuration').set({ revision: 1 }).where('revision', '<', 0).execute(),
    )
  t.ok(written > 20, `${written} transactions of others during the import`)
  t.match(await ended, { status: 201, body: { rates: 100_000 } })
})

t.test('admissions and requests go on while lists are compared', async t => {
  const other = asks(w, await operatorKey(w))
  const { project_id } = await customer(ask, 'Customer 11')
  const lines = Array.from({ length: 20_000 }, (_, at) => `${100_000 + at},Prefix ${at},${(at % 900) + 100},minute,1,1`)
  const body = { csv: list(...lines), direction: 'inbound' }
  let compared = 0
  const sent = [ask, ask, other].map(async by => {
    const { status } = await by('POST', '/price-books/diff', body)
    compared += 1
    return status
  })
  const call = { called: '+2341234567', caller: '+2342010000001', part: 'outbound', way: 'create' } as const
  const service = { type: 'automation', id: project_id } as const
  let meanwhile = 0
  for (; compared < sent.length; meanwhile++) {
    const asked = {
      ...call,
      service,
      call_sid: newId.call(),
      node_id: 'node_d',
      project_id,
      transport: null,
      offer: null,
    }
    await takeAdmission(w.state.db, { ...asked, now_ms: Date.now() }, { dry_run: true })
    t.equal((await w.ask('GET', '/v1/trunks')).status, 200)
  }
  // Three lists are read in 60 slices and more. Were each one slice, there would be three at most.
  t.ok(meanwhile > 5, `${meanwhile} admissions and requests`)
  t.same(await Promise.all(sent), [200, 200, 200])
})

t.test('a list that ends prices in force, or is empty, needs a confirmation', async t => {
  const { project_id } = await customer(ask, 'Customer 5')
  const wanted = { name: 'Part', csv: list('234,Nigeria,800,minute,1,1'), project_id }
  const refused = await ask('POST', '/price-books/imports', wanted)
  t.match(refused, {
    status: 409,
    body: { code: 'prices_end', detail: /1 price ends 4 .*, such as \+1 United States/ },
  })
  t.equal(await price(project_id, '2341234567'), 900)
  const empty = { name: 'Nothing', csv: list(), project_id }
  t.match(await ask('POST', '/price-books/imports', empty), { status: 409, body: { code: 'prices_end' } })
  t.match(await ask('POST', '/price-books/imports', { ...wanted, ...whole }), { status: 201 })
  t.equal(await price(project_id, '2341234567'), 800)
})

t.test('of lists with one time the later import applies', async t => {
  const { project_id } = await customer(ask, 'Customer 6')
  const effective_from = new Date(Date.now() + 3_600_000).toISOString()
  for (let rate = 800; rate < 808; rate++) {
    const book = {
      name: `At ${rate}`,
      csv: list(`234,Nigeria,${rate},minute,1,1`),
      project_id,
      effective_from,
      ...whole,
    }
    t.match(await ask('POST', '/price-books/imports', book), { status: 201 })
    t.equal(await price(project_id, '2341234567', effective_from), rate)
  }
})

t.test('a time with an offset is kept in UTC', async t => {
  const { project_id } = await customer(ask, 'Customer 7')
  const csv = list('234,Nigeria,700,minute,1,1')
  const imported = (effective_from: string) =>
    ask('POST', '/price-books/imports', { name: 'Offset', csv, project_id, effective_from, ...whole })
  const { body } = await imported('2030-01-01t04:00:00+05:00')
  t.equal(body.effective_from, '2029-12-31T23:00:00.000Z')
  t.equal(await price(project_id, '2341234567', '2029-12-31T23:30:00.000Z'), 700)
  for (const none of ['2030-02-30T00:00:00Z', '2030-01-01T24:30:00Z', '2030-01-01T00:00:00', 'tomorrow'])
    t.match(await imported(none), { status: 422, body: { errors: [{ pointer: '/effective_from' }] } }, none)
})

t.test('what a killed import left behind prices nothing and is deleted', async t => {
  const now_ms = Date.now()
  const rate = { prefix: '234', label: 'x', rate_micro: 1, rate_unit: 'minute' as const }
  const increments = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
  const rates = Array.from({ length: 1200 }, (_, at) => ({ ...rate, ...increments, prefix: String(10_000 + at) }))
  const id = await draftRates(w.state, rates, now_ms)
  const left = async () => {
    const { count } = await w.state.db
      .selectFrom('rate')
      .select(eb => eb.fn.countAll<number>().as('count'))
      .where('price_book_id', '=', id)
      .executeTakeFirstOrThrow()
    return Number(count)
  }
  await dropOldDrafts(w.state, now_ms + 5 * 3_600_000)
  t.equal(await left(), 1200, 'an import may still run')
  t.notMatch((await ask('GET', '/price-books?limit=1000')).text, id)
  await dropOldDrafts(w.state, now_ms + 7 * 3_600_000)
  t.equal(await left(), 0)
  t.same(await w.state.db.selectFrom('price_book_draft').selectAll().where('id', '=', id).execute(), [])
})

t.test('a long import is whole, and beside calls its transactions are short', async t => {
  const rate = { label: 'x', rate_micro: 1, rate_unit: 'minute' as const }
  const increments = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
  const rates = Array.from({ length: 1050 }, (_, at) => ({ ...rate, ...increments, prefix: String(20_000 + at) }))
  const count = async () => {
    const query = w.state.db.selectFrom('rate').select(eb => eb.fn.countAll<number>().as('rows'))
    return Number((await query.executeTakeFirstOrThrow()).rows)
  }
  /** Imports the rates. Returns how many the largest transaction has written. */
  const largest = async () => {
    const parts: number[] = []
    const shortTransaction: typeof w.state.shortTransaction = async (...of) => {
      const before = await count()
      const result = await w.state.shortTransaction(...of)
      parts.push((await count()) - before)
      return result
    }
    const id = await draftRates({ ...w.state, shortTransaction }, rates, Date.now())
    const written = w.state.db.selectFrom('rate').select('prefix').where('price_book_id', '=', id).orderBy('prefix')
    t.same(
      (await written.execute()).map(({ prefix }) => prefix),
      rates.map(({ prefix }) => prefix),
    )
    return Math.max(...parts)
  }
  t.equal(await largest(), 500, 'without calls')
  // A call of an hour that a slow machine does not reach either.
  await ranCall(w, { hours_ago: -1 })
  t.equal(await largest(), 100, 'beside calls')
})

t.test('a label is data: no formula in a spreadsheet, no control character on a screen', async t => {
  const { project_id } = await customer(ask, 'Customer 8')
  const csv = list('234,"=HYPERLINK(""http://x"")",700,minute,1,1', '235,-cheap,700,minute,1,1')
  const { body } = await ask('POST', '/price-books/imports', { name: 'Formula', csv, project_id, ...whole })
  const { text } = await ask('GET', `/price-books/${body.id}/export`)
  t.match(text, /\n234,"'=HYPERLINK\(""http:\/\/x""\)",700,[\s\S]*\n235,'-cheap,/)
  t.match(await ask('POST', '/price-books/diff', { csv: text, project_id }), { body: { same: 2, changed: 0 } })
  for (const label of ['"a\nb"', 'a\u001b[2Jb', 'a\u202eb', 'a\u200bb', 'a\u200db', 'a\ufeffb'])
    t.match(await ask('POST', '/price-books/diff', { csv: list(`234,${label},700,minute,1,1`) }), {
      status: 422,
      body: { errors: [{ message: /^line \d: the label has a control character/ }] },
    })
})

t.test('what a carrier takes is a book of its own kind, which sells nothing', async t => {
  const { project_id } = await customer(ask, 'Costs')
  const before = await price(project_id, '2341234567')
  const carrier = async (name: string) =>
    (await ask('POST', '/carriers', { name, sources: [], targets: [], routes: [] })).body.id
  const [carrier_id, other] = [await carrier('Costly'), await carrier('Other')]
  const csv = list('234,Nigeria,0.5,minute,1,1', '2348,Mobile,0.7,minute,1,1')
  const diff = await ask('POST', '/cost-books/diff', { csv, carrier_id })
  t.match(diff, { status: 200, body: { against: null, added: 2 } })
  const { status, body } = await ask('POST', '/cost-books/imports', { name: 'November', csv, carrier_id })
  t.match({ status, body }, { status: 201, body: { carrier_id, direction: 'outbound', rates: 2, revision: 1 } })
  t.notOk('project_id' in body)
  t.equal(await price(project_id, '2341234567'), before, 'customers pay what they paid')
  const cheaper = list('234,Nigeria,0.4,minute,1,1')
  const second = { name: 'December', csv: cheaper, carrier_id, effective_from: '2027-01-01T00:00:00Z' }
  t.match(await ask('POST', '/cost-books/diff', second), { status: 422, body: { errors: [{ pointer: '/name' }] } })
  t.match(await ask('POST', '/cost-books/imports', second), { status: 409, body: { code: 'prices_end' } })
  t.match(await ask('POST', '/cost-books/imports', { ...second, confirm_ended: true }), { body: { revision: 2 } })
  t.match(await ask('POST', '/cost-books/diff', { csv, carrier_id: other }), { body: { against: null } })
  t.match(await ask('GET', `/cost-books?carrier_id=${carrier_id}`), { body: { data: { length: 2 } } })
  t.match(await ask('GET', `/cost-books?carrier_id=${other}`), { body: { data: [] } })
  t.match(await ask('GET', `/cost-books/${body.id}/rates`), {
    body: { data: [{ prefix: '234', rate_micro: 500_000 }] },
  })
  t.equal((await ask('GET', `/cost-books/${body.id}/export`)).text, csv)
  t.match(await ask('GET', `/price-books/${body.id}`), { status: 404 })
  const sold = (await ask('GET', '/price-books?limit=1000')).body.data
  t.notOk(sold.some(({ id }: { id: string }) => id === body.id))
  t.match(await ask('GET', `/cost-books/${sold[0].id}`), { status: 404 })
  const missing = await ask('POST', '/cost-books/diff', { csv })
  t.match(missing, { status: 422, body: { errors: [{ pointer: '/carrier_id' }] } })
  t.match(await ask('POST', '/cost-books/diff', { csv, carrier_id: 'car_none' }), { status: 404 })
})

t.test('the same list is imported for a project that has no list of its own yet, and then no more', async t => {
  const { project_id } = await customer(ask, 'Pinned')
  const env = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: '07'.repeat(32) }
  const file = join(t.testdir(), 'pinned.csv')
  writeFileSync(file, list('234,Nigeria,800,minute,1,1'))
  const run = (...words: string[]) =>
    runCommand(['rates', 'import', file, '--confirm', ...words], { env, state: w.state })
  t.match(await run(), { code: 0, stdout: /: 1 rate, in force from / })
  const pinned = await run('--project', project_id)
  t.match(pinned, { code: 0, stdout: /list of its own\npbk_\S+: 1 rate, in force from / })
  const again = await run('--project', project_id, '--json')
  t.match(JSON.parse(again.stdout), { against: { project_id }, added: 0, same: 1 }, 'a program reads why')
  writeFileSync(file, list('234,Nigeria,850,minute,1,1'))
  t.equal((await run()).code, 0)
  t.equal(await price(project_id, '2341234567'), 800, 'the next general price is not the project’s')
})
