import { readFileSync } from 'node:fs'
import { effectivePriceBook, lookupRate } from '../../../../core/state/money/rates.ts'
import { INSTALLATION } from '../../../../core/state/people/audit.ts'
import { controlPlane } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { asks, customer, operatorKey, trailOf } from '../../../support/operators.ts'

// Price books by /operator/v1: the price that calls get afterwards, and what the audit trails say.

const boundless = { burst: 1_000_000, per_second: 1_000_000 }
const w = await controlPlane(t, { rate_limit: boundless, bad_credentials: boundless })
const ask = asks(w, await operatorKey(w))
const list = (...lines: string[]): string => ['prefix,label,rate,unit,initial,additional', ...lines, ''].join('\n')
const STANDARD = readFileSync('fixtures/rates/standard.csv', 'utf8')

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
  const later = await ask('POST', '/price-books/imports', { name: 'Discount', csv, project_id, effective_from })
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
  t.match(await importing, { status: 201, body: { rates: 100_000 } })
})
