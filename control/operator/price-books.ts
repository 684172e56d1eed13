import { Readable } from 'node:stream'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import {
  changesNothing,
  describeLeaps,
  describeRatePlan,
  type ImportedRate,
  planRates,
  readRates,
  writeRates,
} from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import {
  countRates,
  effectivePriceBook,
  insertPriceBook,
  listPriceBooks,
  listRates,
  type PriceBookRow,
  pageOfRates,
} from '../../core/state/money/rates.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { pageOf, pageQuery, readCursor } from '../http/paging.ts'
import { type Change, invalidFields, isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import {
  Count64,
  Currency,
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
import { route } from './route.ts'

/** The longest request of an operator, which carries a rate list: about 100,000 prices. */
export const MAX_RATE_LIST_BYTES = 8 * 1024 * 1024
const MAX_PAGE = 1000
const DEFAULT_PAGE = 100
/** The most lines of each kind in a difference. The rest is only counted. */
const SHOWN = 20

const Direction = oneOf('outbound', 'inbound')

const PriceBook = resource('OperatorPriceBook', {
  id: Type.String(),
  name: Type.String(),
  project_id: nullable(Type.String(), { description: 'Null: for every project without a book of its own.' }),
  direction: Direction,
  currency: Currency,
  effective_from: Instant,
  revision: Count64,
  rates: Count64,
  created_at: Instant,
})

const presentBook = async (db: Db | Trx, row: PriceBookRow): Promise<Static<typeof PriceBook>> => ({
  id: row.id,
  name: row.name,
  project_id: row.project_id,
  direction: row.direction,
  currency: row.currency as Static<typeof Currency>,
  effective_from: row.effective_from,
  revision: row.revision,
  rates: await countRates(db, row.id),
  created_at: row.created_at,
})

const Difference = resource('OperatorPriceDifference', {
  against: nullable(PriceBook, { description: 'The book whose prices apply then; null when there is none.' }),
  added: Count64,
  changed: Count64,
  ended: Count64,
  same: Count64,
  lines: list(Type.String(), { maxItems: 3 * SHOWN + 4 }),
  leaps: list(Type.String({ description: 'A price that moves tenfold or more.' })),
})

/** What a rate list is for. */
const LIST = {
  csv: Type.String({
    minLength: 1,
    maxLength: MAX_RATE_LIST_BYTES,
    description: 'Lines of prefix,label,rate,unit,initial,additional. The rate is in minor units.',
  }),
  direction: optional(Direction),
  project_id: optional(nullable(Type.String({ maxLength: 64 }))),
  currency: optional(Currency),
  effective_from: optional(Instant),
}
const RateList = input('RateListRequest', LIST)

interface Proposal {
  readonly book: Pick<PriceBookRow, 'project_id' | 'direction' | 'effective_from'> & {
    readonly currency: typeof CURRENCY
  }
  readonly rates: readonly ImportedRate[]
}

/** Reads a request's rate list. The whole list is refused with all its faults. */
async function proposed(
  db: Db | Trx,
  body: Static<typeof RateList>,
  now: string,
): Promise<Proposal | Refusal<'validation_failed' | 'not_found'>> {
  const { csv, direction = 'outbound', project_id = null } = body
  if (project_id !== null && !(await findAnyProject(db, project_id))) return notFound(`project ${project_id}`)
  const { rates, problems } = readRates(csv)
  if (problems.length > 0)
    return invalidFields(
      problems.map(({ line, message }) => ({ pointer: '/csv', message: `line ${line}: ${message}` })),
    )
  const effective_from = body.effective_from === undefined ? now : iso(Date.parse(body.effective_from))
  return { book: { project_id, direction, currency: CURRENCY, effective_from }, rates }
}

/** Compares a list with the prices that apply when it comes into force. */
async function differenceOf(db: Db | Trx, { book, rates }: Proposal) {
  const against = await effectivePriceBook(db, book.project_id, book.direction, book.effective_from)
  return { against, plan: planRates(against ? await listRates(db, against.id) : [], rates) }
}

const customerOf = async (db: Trx, project_id: string | null): Promise<Pick<Change, 'customer'>> => {
  const project = project_id === null ? undefined : await findAnyProject(db, project_id)
  return project ? { customer: { organization_id: project.organization_id, project_id: project.id } } : {}
}

export const priceBooks = [
  route({
    method: 'get',
    path: '/price-books',
    summary: 'List the price books of the installation and of projects',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(PriceBook) },
    async run({ db, query }) {
      const after = readCursor(query.cursor, ['string'])
      if (isRefusal(after)) return after
      const limit = query.limit ?? DEFAULT_PAGE
      const rows = await listPriceBooks(db, { limit: limit + 1, ...(after ? { after: after[0] } : {}) })
      const page = pageOf(rows, limit, row => [row.id])
      const data: Static<typeof PriceBook>[] = []
      for (const row of page.shown) data.push(await presentBook(db, row))
      return { status: 200, body: { data, ...page.more } }
    },
  }),

  route({
    method: 'post',
    path: '/price-books/diff',
    summary: 'Compare a rate list with the prices in force; nothing is stored',
    scope: 'operator:read',
    context: 'organization',
    body: RateList,
    replies: { 200: Difference },
    async run({ db, body, now }) {
      const proposal = await proposed(db, body, now)
      if (isRefusal(proposal)) return proposal
      const { against, plan } = await differenceOf(db, proposal)
      const { added, changed, ended, same } = plan
      const difference = {
        against: against ? await presentBook(db, against) : null,
        added: added.length,
        changed: changed.length,
        ended: ended.length,
        same,
        lines: [...describeRatePlan(plan, SHOWN)],
        leaps: [...describeLeaps(plan)],
      }
      return { status: 200, body: difference, change: null }
    },
  }),

  route({
    method: 'post',
    path: '/price-books/imports',
    summary: 'Import a rate list as a new price book, whole or not at all',
    description:
      'A price book is never changed: its prices apply from `effective_from` until a newer book of the same project and direction. ' +
      'A list that moves a price tenfold or more needs `confirm_leaps`.',
    scope: 'operator:money',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'seats', action: 'price_book.imported' },
    body: input('ImportRatesRequest', { name: Name, ...LIST, confirm_leaps: optional(Flag) }),
    replies: { 201: PriceBook },
    refusals: ['price_leap'],
    async run({ db, body, now }) {
      const { name, confirm_leaps = false, ...rate_list } = body
      const proposal = await proposed(db, rate_list, now)
      if (isRefusal(proposal)) return proposal
      const { against, plan } = await differenceOf(db, proposal)
      const leaps = describeLeaps(plan)
      if (leaps.length > 0 && !confirm_leaps)
        return refuse('price_leap', { limit: leaps.length, value: leaps[0] ?? '' })
      const row = await insertPriceBook(db, { ...proposal.book, name, created_at: now }, proposal.rates)
      const after = await presentBook(db, row)
      const change: Change = {
        resource: { type: 'price_book', id: row.id, name, href: `/operator/v1/price-books/${row.id}` },
        summary: `Imported the price book ${name}`,
        detail: changesNothing(plan) ? 'the same prices' : (describeRatePlan(plan, 0).at(-1) ?? null),
        before: against ? await presentBook(db, against) : null,
        after,
        to_revision: row.revision,
        ...(await customerOf(db, row.project_id)),
      }
      return { status: 201, body: after, change }
    },
  }),

  route({
    method: 'get',
    path: '/price-books/{price_book_id}',
    summary: 'Read a price book',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: PriceBook },
    async run({ db, book }) {
      return { status: 200, body: await presentBook(db, book) }
    },
  }),

  route({
    method: 'get',
    path: '/price-books/{price_book_id}/rates',
    summary: 'List the prices of a price book, by prefix',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: {
      200: pageSchema(
        resource('OperatorRate', {
          prefix: Type.String(),
          label: Type.String(),
          rate_micro: Int64,
          rate_unit: oneOf('minute', 'second'),
          increment_initial_seconds: Int64,
          increment_additional_seconds: Int64,
        }),
      ),
    },
    async run({ db, book, query }) {
      const after = readCursor(query.cursor, ['string'])
      if (isRefusal(after)) return after
      const limit = query.limit ?? DEFAULT_PAGE
      const rows = await pageOfRates(db, book.id, { limit: limit + 1, ...(after ? { after: after[0] } : {}) })
      const page = pageOf(rows, limit, row => [row.prefix])
      const data = page.shown.map(({ id: _, price_book_id: __, ...rate }) => rate)
      return { status: 200, body: { data, ...page.more } }
    },
  }),

  route({
    method: 'get',
    path: '/price-books/{price_book_id}/export',
    summary: 'Download a price book as the CSV that an import takes',
    scope: 'operator:read',
    context: 'organization',
    produces: 'text/csv',
    replies: { 200: null },
    async run({ db, book }) {
      const csv = Buffer.from(writeRates(await listRates(db, book.id)))
      const headers = { 'Content-Type': 'text/csv; charset=utf-8', 'Content-Length': String(csv.length) }
      return { status: 200, headers, stream: Readable.from([csv]) }
    },
  }),
]
