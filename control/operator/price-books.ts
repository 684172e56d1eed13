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
import type { Db, Trx } from '../../core/state/index.ts'
import { draftRates, publishDraft } from '../../core/state/money/price-book-drafts.ts'
import {
  countRates,
  effectivePriceBook,
  listPriceBooks,
  listRates,
  type PriceBookRow,
  pageOfRates,
  type RateRow,
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

interface Comparison {
  readonly book: Pick<PriceBookRow, 'project_id' | 'direction' | 'effective_from'> & {
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
  body: Static<typeof RateList>,
  breathe: Breathe,
): Promise<Comparison | Refusal<'validation_failed' | 'not_found'>> {
  const { csv, direction = 'outbound', project_id = null, effective_from = iso(clock.now()) } = body
  if (project_id !== null && !(await findAnyProject(state.db, project_id))) return notFound(`project ${project_id}`)
  const { rates, problems } = await readRates(csv, breathe)
  if (problems.length > 0)
    return invalidFields(
      problems.map(({ line, message }) => ({ pointer: '/csv', message: `line ${line}: ${message}` })),
    )
  const against = await effectivePriceBook(state.db, project_id, direction, effective_from)
  const plan = await planRates(against ? await allRates(state.db, against.id) : [], rates, breathe)
  const leaps = await describeLeaps(plan, breathe)
  return { book: { project_id, direction, currency: CURRENCY, effective_from }, rates, against, plan, leaps }
}

const RATES_A_READ = 2000

/** Reads the rates of a book, so many at a time. */
async function allRates(db: Db, price_book_id: string): Promise<RateRow[]> {
  const all: RateRow[] = []
  for (;;) {
    const last = all.at(-1)
    const page = await pageOfRates(db, price_book_id, {
      limit: RATES_A_READ,
      ...(last ? { after: last.prefix } : {}),
    })
    for (const row of page) all.push(row)
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
  }),

  route({
    method: 'post',
    path: '/price-books/imports',
    summary: 'Import a rate list as a new price book, whole or not at all',
    description:
      'A price book is never changed: its prices apply from `effective_from` until a newer book of the same project and direction. ' +
      'Of two books with one time the later import applies. ' +
      'A list that moves a price tenfold or more needs `confirm_leaps`; one that ends prices in force, or is empty, `confirm_ended`.',
    scope: 'operator:money',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'seats', action: 'price_book.imported' },
    body: input('ImportRatesRequest', {
      name: Name,
      ...LIST,
      confirm_leaps: optional(Flag),
      confirm_ended: optional(Flag),
    }),
    replies: { 201: PriceBook },
    refusals: ['price_leap', 'prices_end', 'state_conflict'],
    async prepare({ body, services, breathe }) {
      const { name: _, confirm_leaps: __, confirm_ended: ___, ...rate_list } = body
      const comparison = await compared(services, rate_list, breathe)
      if (isRefusal(comparison)) return comparison
      const refusal = unconfirmed(comparison, body)
      if (refusal) return refusal
      const { rates, ...rest } = comparison
      return { ...rest, draft_id: await draftRates(services.state, rates, services.clock.now()) }
    },
    async run({ db, body: { name }, prepared, now }) {
      if (isRefusal(prepared)) return prepared
      const { book, against, plan, draft_id } = prepared
      const current = await effectivePriceBook(db, book.project_id, book.direction, book.effective_from)
      const row =
        current?.id === against?.id ? await publishDraft(db, draft_id, { ...book, name, created_at: now }) : undefined
      // What was confirmed was a comparison with other prices.
      if (!row) return refuse('state_conflict', { name: 'the list of prices in force', value: 'changed meanwhile' })
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
