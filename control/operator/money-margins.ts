import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { MARGIN_GROUPS, type MarginRow, marginsBy } from '../../core/state/money/margins.ts'
import { invalid } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Day,
  Int64,
  list,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const MAX_DAYS = 366
const MAX_LINES = 5000
const DAY_MS = 86_400_000

const figures = { calls: Count64, charge_minor: Int64, cost_minor: Int64, margin_minor: Int64 }

const Margins = resource('OperatorMargins', {
  currency: Currency,
  from: Day,
  to: Day,
  group_by: oneOf(...MARGIN_GROUPS),
  data: list(
    resource('OperatorMargin', {
      key: nullable(Type.String(), {
        description: 'The day, carrier, project, destination or call; null for calls without one.',
      }),
      ...figures,
    }),
  ),
  total: resource('OperatorMarginTotal', figures),
})

const figuresOf = ({ calls, charge_minor, cost_minor }: Omit<MarginRow, 'key'>) => ({
  calls,
  charge_minor,
  cost_minor,
  margin_minor: charge_minor - cost_minor,
})

export const margins = [
  route({
    method: 'get',
    path: '/margins',
    summary: 'Compare the revenue of settled calls with what their carriers charge',
    description:
      'A call costs what the carrier’s cost book says; without one the `cost_minor` a minute of the route that took ' +
      'it, by the second, rounded up once. ' +
      'Days are those of the organizations, both ends included, at most 366.',
    scope: 'operator:money',
    context: 'organization',
    query: Type.Object(
      {
        from: Day,
        to: Day,
        group_by: optional(oneOf(...MARGIN_GROUPS)),
        project_id: optional(Type.String({ maxLength: 64 })),
        carrier_id: optional(Type.String({ maxLength: 64 })),
      },
      { additionalProperties: false },
    ),
    replies: { 200: Margins },
    async run({ db, query: { from, to, group_by = 'day', project_id, carrier_id } }) {
      if (from > to) return invalid('from', 'is after to')
      if (Date.parse(to) - Date.parse(from) >= MAX_DAYS * DAY_MS)
        return invalid('from', `must be less than ${MAX_DAYS} days before to`)
      const filter = {
        from,
        to,
        ...(project_id === undefined ? {} : { project_id }),
        ...(carrier_id === undefined ? {} : { carrier_id }),
      }
      const rows = await marginsBy(db, group_by, filter, MAX_LINES)
      const none = { calls: 0, charge_minor: 0, cost_minor: 0 }
      // The lines end at a limit. The days of a range never reach it.
      const days = group_by === 'day' ? rows : await marginsBy(db, 'day', filter, MAX_LINES)
      const total = days.reduce(
        (sum, row) => ({
          calls: sum.calls + row.calls,
          charge_minor: sum.charge_minor + row.charge_minor,
          cost_minor: sum.cost_minor + row.cost_minor,
        }),
        none,
      )
      const body: Static<typeof Margins> = {
        currency: CURRENCY,
        from,
        to,
        group_by,
        data: rows.map(row => ({ key: row.key, ...figuresOf(row) })),
        total: figuresOf(total),
      }
      return { status: 200, body }
    },
  }),
]
