import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { shownPrefix } from '../../core/domain/rating/index.ts'
import { listContainments } from '../../core/state/alerts/containments.ts'
import type { Db } from '../../core/state/index.ts'
import { effectivePriceBook, listCoverage, lookupRate, type RateRow } from '../../core/state/money/rates.ts'
import { invalid } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Flag,
  Instant,
  list,
  Money,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { rateMinor } from './outbound-policy-present.ts'
import { route } from './route.ts'

const Direction = oneOf('inbound', 'outbound')

const Rate = resource('Rate', {
  match: Type.String(),
  label: Type.String(),
  rate_minor: Money,
  rate_unit: oneOf('minute', 'second'),
  increment_initial_seconds: Count64,
  increment_additional_seconds: Count64,
})

const presentRate = (row: RateRow): Static<typeof Rate> => ({
  match: shownPrefix(row.prefix),
  label: row.label,
  rate_minor: rateMinor(row.rate_micro),
  rate_unit: row.rate_unit,
  increment_initial_seconds: row.increment_initial_seconds,
  increment_additional_seconds: row.increment_additional_seconds,
})

const Coverage = resource('RateCoverage', {
  as_of: Instant,
  currency: Currency,
  effective_from: nullable(Instant),
  data: list(Rate),
})

const Lookup = resource('RateLookup', {
  as_of: Instant,
  containment: nullable(
    resource('LookupContainment', { case_ref: Type.String(), prefix: Type.String(), expires_at: Instant }),
  ),
  covered: Flag,
  currency: Currency,
  destination_number: Type.String(),
  direction: Direction,
  gap: nullable(Type.String()),
  price_book: nullable(resource('PriceBook', { id: Type.String(), name: Type.String(), effective_from: Instant })),
  rate: nullable(Rate),
})

async function containmentOf(
  db: Db,
  project_id: string,
  digits: string,
  now: string,
): Promise<Static<typeof Lookup>['containment']> {
  const open = await listContainments(db, project_id, { since: now })
  const found = open.find(containment => digits.startsWith(containment.prefix))
  return found ? { case_ref: found.case_ref, prefix: `+${found.prefix}`, expires_at: found.expires_at } : null
}

export const rates = [
  route({
    method: 'get',
    path: '/rates/coverage',
    summary: 'List the destinations that have both a route and a sell rate',
    scope: 'billing:read',
    restricted_keys: true,
    query: Type.Object({ direction: optional(Direction) }, { additionalProperties: false }),
    replies: { 200: Coverage },
    async run({ db, project, query, now }) {
      const book = await effectivePriceBook(db, project.id, query.direction ?? 'outbound', now)
      const rows = book ? await listCoverage(db, project.id, book) : []
      const body: Static<typeof Coverage> = {
        as_of: now,
        currency: CURRENCY,
        effective_from: book?.effective_from ?? null,
        data: rows.map(presentRate),
      }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/rates/lookup',
    summary: 'Look up what a call to a number costs, or why it has no price',
    scope: 'billing:read',
    restricted_keys: true,
    query: Type.Object(
      { destination: Type.String({ minLength: 1, maxLength: 40 }), direction: optional(Direction) },
      { additionalProperties: false },
    ),
    replies: { 200: Lookup },
    async run({ db, project, query, now }) {
      // An unencoded plus in a query arrives as a space.
      const number = parseNumber(query.destination.replace(/^ /, '+'), DEFAULT_COUNTRY)
      if (!number) return invalid('destination', 'is not a telephone number')
      const direction = query.direction ?? 'outbound'
      const book = await effectivePriceBook(db, project.id, direction, now)
      const found = book && (await lookupRate(db, book.id, number.digits))
      const covered =
        book !== undefined && (await listCoverage(db, project.id, book)).some(({ id }) => id === found?.id)
      const body: Static<typeof Lookup> = {
        as_of: now,
        containment: await containmentOf(db, project.id, number.digits, now),
        covered,
        currency: CURRENCY,
        destination_number: number.e164,
        direction,
        gap: covered ? null : found ? 'no_route' : 'no_rate',
        price_book: book ? { id: book.id, name: book.name, effective_from: book.effective_from } : null,
        rate: found ? presentRate(found) : null,
      }
      return { status: 200, body }
    },
  }),
]
