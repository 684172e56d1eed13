import { Readable } from 'node:stream'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import {
  type Breathe,
  changesNothing,
  describeLeaps,
  describeRatePlan,
  type ImportedRate,
  planRates,
  type RatePlan,
  readRates,
  shownPrefix,
  writeRates,
} from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { findCarrier } from '../../core/state/configuration/carriers.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { draftRates, publishDraft } from '../../core/state/money/price-book-drafts.ts'
import {
  countRates,
  effectiveBook,
  listBooks,
  listRates,
  type PriceBookRow,
  pageOfRates,
  type RateRow,
} from '../../core/state/money/rates.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { pageAfter, pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, invalidFields, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
  Currency,
  described,
  Flag,
  Instant,
  Int64,
  input,
  list,
  Name,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import type { Services } from '../http/services.ts'
import { customerOf } from './customer-of.ts'
import { route } from './route.ts'

/** The longest request of an operator, which carries a rate list: about 100,000 prices. */
export const MAX_RATE_LIST_BYTES = 8 * 1024 * 1024
const MAX_PAGE = 1000
const DEFAULT_PAGE = 100
/** The most lines of each kind in a difference. The rest is only counted. */
const SHOWN = 20

const Direction = oneOf('outbound', 'inbound')

const BOOK = {
  id: Type.String(),
  name: Type.String(),
  direction: Direction,
  currency: Currency,
  effective_from: Instant,
  revision: described(Count64, 'Counts the books of one owner and direction.'),
  rates: described(Count64, 'Number of prices.'),
  created_at: Instant,
}

/** Who a book may belong to. The schema of each kind has one of these, and a cost list needs its carrier. */
const OWNERS = {
  project_id: optional(nullable(Type.String({ maxLength: 64 }))),
  carrier_id: optional(Type.String({ maxLength: 64 })),
}
type Owners = typeof OWNERS

/** Two kinds of books by one mechanism: what customers pay, and what a carrier takes. */
const KINDS = {
  price: {
    path: 'price-books',
    param: 'price_book_id',
    name: 'price book',
    resource: 'price_book',
    action: 'price_book.imported',
    prices: 'prices',
    owners: 'of the installation and of projects',
    again: 'project',
    answer: resource('OperatorPriceBook', {
      project_id: nullable(Type.String(), { description: 'Null: for every project without a book of its own.' }),
      ...BOOK,
    }),
    owner: { project_id: OWNERS.project_id },
    filter: {},
  },
  cost: {
    path: 'cost-books',
    param: 'cost_book_id',
    name: 'cost book',
    resource: 'cost_book',
    action: 'cost_book.imported',
    prices: 'costs',
    owners: 'of carriers',
    again: 'carrier',
    answer: resource('OperatorCostBook', {
      carrier_id: described(Type.String(), 'The carrier that takes these costs.'),
      ...BOOK,
    }),
    owner: { carrier_id: described(Type.String({ maxLength: 64 }), 'The carrier that takes these costs.') },
    filter: { carrier_id: OWNERS.carrier_id },
  },
} as const

type Kind = (typeof KINDS)[keyof typeof KINDS]
/** A book of either kind. */
type Book = Static<Kind['answer']>

async function presentBook(db: Db | Trx, row: PriceBookRow): Promise<Book> {
  const { carrier_id, project_id, ...of } = row
  const book = { ...of, currency: CURRENCY, rates: await countRates(db, row.id) }
  return carrier_id === null ? { project_id, ...book } : { carrier_id, ...book }
}

const differenceOf = ({ answer, prices }: Kind) =>
  resource(prices === 'costs' ? 'OperatorCostDifference' : 'OperatorPriceDifference', {
    against: nullable(answer, { description: `The book whose ${prices} apply then; null when there is none.` }),
    added: described(Count64, `Prefixes that have ${prices} only in the list.`),
    changed: described(Count64, `Prefixes whose ${prices} change.`),
    ended: described(Count64, 'Prefixes that the list has no more.'),
    same: described(Count64, 'Prefixes that stay as they are.'),
    lines: described(list(Type.String(), { maxItems: 3 * SHOWN + 4 }), 'The first changes, as sentences.'),
    leaps: list(Type.String({ description: 'A price that moves tenfold or more.' })),
  })

/** What a rate list is for. */
const LIST = {
  csv: Type.String({
    minLength: 1,
    maxLength: MAX_RATE_LIST_BYTES,
    description: 'Lines of prefix,label,rate,unit,initial,additional. The rate is in minor units.',
  }),
  direction: optional(described(Direction, 'Of the calls; outbound unless given.')),
  currency: optional(Currency),
  effective_from: optional(described(Instant, 'When the book comes into force; now unless given.')),
}

/** The body of a comparison of either kind. */
const listOf = (of: Kind) => {
  const fields = { ...LIST, ...of.owner } as typeof LIST & Owners
  return input(of.path === 'cost-books' ? 'CostListRequest' : 'RateListRequest', fields)
}
type RateList = Static<ReturnType<typeof listOf>>

/** The body of an import of either kind. */
const importOf = (of: Kind) => {
  const confirmations = { confirm_leaps: optional(Flag), confirm_ended: optional(Flag) }
  const fields = { name: Name, ...LIST, ...of.owner, ...confirmations } as {
    readonly name: typeof Name
  } & typeof LIST &
    Owners &
    typeof confirmations
  return input(of.path === 'cost-books' ? 'ImportCostsRequest' : 'ImportRatesRequest', fields)
}

interface Comparison {
  readonly book: Pick<PriceBookRow, 'project_id' | 'carrier_id' | 'direction' | 'effective_from'> & {
    readonly currency: typeof CURRENCY
  }
  readonly rates: readonly ImportedRate[]
  /** The book whose prices apply when the list comes into force. */
  readonly against: PriceBookRow | undefined
  readonly plan: RatePlan
  readonly leaps: readonly string[]
}

/** Reads a request's rate list and compares it. The whole list is refused with all its faults. */
async function compared(
  { state, clock }: Pick<Services, 'state' | 'clock'>,
  body: RateList,
  breathe: Breathe,
): Promise<Comparison | Refusal<'validation_failed' | 'not_found'>> {
  const { csv, direction = 'outbound', effective_from = iso(clock.now()) } = body
  const { project_id = null, carrier_id = null } = body
  if (carrier_id !== null && !(await findCarrier(state.db, carrier_id))) return notFound(`carrier ${carrier_id}`)
  if (project_id !== null && !(await findAnyProject(state.db, project_id))) return notFound(`project ${project_id}`)
  const { rates, problems } = await readRates(csv, breathe)
  if (problems.length > 0)
    return invalidFields(
      problems.map(({ line, message }) => ({ pointer: '/csv', message: `line ${line}: ${message}` })),
    )
  const against = await effectiveBook(state.db, { project_id, carrier_id }, direction, effective_from)
  const plan = await planRates(against ? await allRates(state.db, against.id, breathe) : [], rates, breathe)
  const leaps = await describeLeaps(plan, breathe)
  const owner = { project_id, carrier_id }
  return { book: { ...owner, direction, currency: CURRENCY, effective_from }, rates, against, plan, leaps }
}

const RATES_A_READ = 500

/** Reads the rates of a book, so many at a time. */
async function allRates(db: Db, price_book_id: string, breathe: Breathe): Promise<RateRow[]> {
  const all: RateRow[] = []
  for (;;) {
    const last = all.at(-1)
    const page = await pageOfRates(db, price_book_id, {
      limit: RATES_A_READ,
      ...(last ? { after: last.prefix } : {}),
    })
    for (const row of page) all.push(row)
    await breathe()
    if (page.length < RATES_A_READ) return all
  }
}

/** Refuses an import that nobody can have meant, unless it is confirmed. */
function unconfirmed(
  { rates, plan, leaps }: Comparison,
  { confirm_leaps = false, confirm_ended = false }: { confirm_leaps?: boolean; confirm_ended?: boolean },
): Refusal<'price_leap' | 'prices_end'> | null {
  if (leaps.length > 0 && !confirm_leaps) return refuse('price_leap', { limit: leaps.length, value: leaps[0] ?? '' })
  const [first] = plan.ended
  if ((rates.length > 0 && !first) || confirm_ended) return null
  const name = first ? `${shownPrefix(first.prefix)} ${first.label}` : 'none'
  return refuse('prices_end', { value: rates.length, limit: plan.ended.length, name })
}

/** What a comparison of a list with the book in force answers, of either kind. */
export type BookDifference = Static<ReturnType<typeof differenceOf>>

const exampleOf = (of: Kind) => ({
  csv: 'prefix,label,rate,unit,initial,additional\n234,Nigeria,1250,minute,60,1\n',
  ...(of.path === 'cost-books' ? { carrier_id: 'car_0f8fad5b-d9cb-469f-a165-70867728950e' } : {}),
})

const listRoute = (of: Kind) =>
  route({
    method: 'get',
    path: `/${of.path}`,
    summary: `List the ${of.name}s ${of.owners}`,
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object({ ...pageQuery(MAX_PAGE), ...of.filter }, { additionalProperties: false }),
    replies: { 200: pageSchema(of.answer) },
    async run({ db, query }) {
      const after = readCursor(query.cursor, ['string'])
      if (isRefusal(after)) return after
      const limit = query.limit ?? DEFAULT_PAGE
      const { carrier_id } = query as { readonly carrier_id?: string }
      const rows = await listBooks(db, {
        cost: of.path === 'cost-books',
        limit: limit + 1,
        ...(carrier_id === undefined ? {} : { carrier_id }),
        ...(after ? { after: after[0] } : {}),
      })
      const page = pageOf(rows, limit, row => [row.id])
      const data: Book[] = []
      for (const row of page.shown) data.push(await presentBook(db, row))
      return { status: 200, body: { data, ...page.more } }
    },
  })

const diffRoute = (of: Kind) =>
  route({
    method: 'post',
    path: `/${of.path}/diff`,
    summary: `Compare a rate list with the ${of.prices} in force; nothing is stored`,
    scope: 'operator:read',
    context: 'organization',
    body: listOf(of),
    replies: { 200: differenceOf(of) },
    example: exampleOf(of),
    prepare: ({ body, services, breathe }) => compared(services, body, breathe),
    async run({ db, prepared }) {
      if (isRefusal(prepared)) return prepared
      const { against, plan, leaps } = prepared
      const { added, changed, ended, same } = plan
      const difference = {
        against: against ? await presentBook(db, against) : null,
        added: added.length,
        changed: changed.length,
        ended: ended.length,
        same,
        lines: [...describeRatePlan(plan, SHOWN)],
        leaps: [...leaps],
      }
      return { status: 200, body: difference, change: null }
    },
  })

const importRoute = (of: Kind) =>
  route({
    method: 'post',
    path: `/${of.path}/imports`,
    summary: `Import a rate list as a new ${of.name}, whole or not at all`,
    description:
      `A ${of.name} is never changed: its ${of.prices} apply from \`effective_from\` until a newer book of the same ` +
      `${of.again} and direction. \`/${of.path}/diff\` previews an import. ` +
      'Of two books with one time the later import applies. ' +
      'A list that moves a price tenfold or more needs `confirm_leaps`; one that ends prices in force, or is empty, `confirm_ended`.',
    scope: 'operator:money',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'seats', action: of.action },
    body: importOf(of),
    replies: { 201: of.answer },
    example: { name: 'November', ...exampleOf(of) },
    refusals: ['price_leap', 'prices_end', 'state_conflict'],
    async prepare({ body, services, breathe }) {
      const comparison = await compared(services, body, breathe)
      if (isRefusal(comparison)) return comparison
      const refusal = unconfirmed(comparison, body)
      if (refusal) return refusal
      const { rates, ...rest } = comparison
      return { ...rest, draft_id: await draftRates(services.state, rates, services.clock.now()) }
    },
    async run({ db, body: { name }, prepared, now }) {
      if (isRefusal(prepared)) return prepared
      const { book, against, plan, draft_id } = prepared
      const current = await effectiveBook(db, book, book.direction, book.effective_from)
      const row =
        current?.id === against?.id ? await publishDraft(db, draft_id, { ...book, name, created_at: now }) : undefined
      // What was confirmed was a comparison with other prices.
      if (!row)
        return refuse('state_conflict', { name: `the list of ${of.prices} in force`, value: 'changed meanwhile' })
      const after = await presentBook(db, row)
      const change: Change = {
        resource: { type: of.resource, id: row.id, name, href: `/operator/v1/${of.path}/${row.id}` },
        summary: `Imported the ${of.name} ${name}`,
        detail: changesNothing(plan) ? `the same ${of.prices}` : (describeRatePlan(plan, 0).at(-1) ?? null),
        before: against ? await presentBook(db, against) : null,
        after,
        to_revision: row.revision,
        ...(await customerOf(db, row.project_id)),
      }
      return { status: 201, body: after, change }
    },
  })

const readRoute = (of: Kind) =>
  route({
    method: 'get',
    path: `/${of.path}/{${of.param}}`,
    summary: `Read a ${of.name}`,
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: of.answer },
    async run({ db, book }) {
      return { status: 200, body: await presentBook(db, book) }
    },
  })

const ratesRoute = (of: Kind) =>
  route({
    method: 'get',
    path: `/${of.path}/{${of.param}}/rates`,
    summary: `List the ${of.prices} of a ${of.name}, by prefix`,
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: {
      200: pageSchema(
        resource('OperatorRate', {
          prefix: described(Type.String(), 'Digits after the plus; `sip`: calls to SIP addresses.'),
          label: Type.String(),
          rate_micro: described(Int64, 'Millionths of a minor unit for each `rate_unit`.'),
          rate_unit: oneOf('minute', 'second'),
          increment_initial_seconds: described(Int64, 'The least that is charged.'),
          increment_additional_seconds: described(Int64, 'The steps in which more is charged.'),
        }),
      ),
    },
    run: ({ db, book, query }) =>
      pageAfter(
        { limit: DEFAULT_PAGE, ...query },
        {
          read: window => pageOfRates(db, book.id, window),
          key: row => row.prefix,
          present: ({ id: _, price_book_id: __, ...rate }) => rate,
        },
      ),
  })

const exportRoute = (of: Kind) =>
  route({
    method: 'get',
    path: `/${of.path}/{${of.param}}/export`,
    summary: `Download a ${of.name} as the CSV that an import takes`,
    scope: 'operator:read',
    context: 'organization',
    produces: 'text/csv',
    replies: { 200: null },
    async run({ db, book }) {
      const csv = Buffer.from(writeRates(await listRates(db, book.id)))
      const headers = { 'Content-Type': 'text/csv; charset=utf-8', 'Content-Length': String(csv.length) }
      return { status: 200, headers, stream: Readable.from([csv]) }
    },
  })

const booksOf = (of: Kind) => [
  listRoute(of),
  diffRoute(of),
  importRoute(of),
  readRoute(of),
  ratesRoute(of),
  exportRoute(of),
]

export const priceBooks = booksOf(KINDS.price)
export const costBooks = booksOf(KINDS.cost)
