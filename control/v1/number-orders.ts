import { availableMinor } from '../../core/domain/billing/available.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { newId } from '../../core/runtime/ids.ts'
import {
  findOrder,
  insertOrder,
  listOrders,
  type NumberOrderRow,
} from '../../core/state/configuration/number-orders.ts'
import {
  countTaken,
  type NumberRow,
  numbersNamed,
  takeAvailableNumber,
} from '../../core/state/configuration/numbers.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { chargeNumbersOf, dueForNumbersMinor } from '../../core/state/money/number-charges.ts'
import { findBillingAccount } from '../../core/state/money/rates.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { pageBefore, pageQuery } from '../http/paging.ts'
import { isRefusal, notFound, type Refusal, refuse } from '../http/reply.ts'
import { Currency, E164, Instant, input, list, oneOf, pageSchema, resource, type Static, Type } from '../http/schema.ts'
import { numberChange, PhoneNumber, presentNumber, type ShownNumber } from './numbers.ts'
import { route } from './route.ts'

const MAX_ORDER = 100
/** The most numbers that a project takes for itself. */
const MAX_HELD = { sandbox: 100, live: 1000 } as const
const MAX_PAGE = 200

const NumberOrder = resource('NumberOrder', {
  id: Type.String(),
  status: oneOf('completed'),
  currency: Currency,
  created_at: Instant,
  ordered: list(Type.String()),
  numbers: list(PhoneNumber),
})
type Order = Static<typeof NumberOrder>

/** Presents an order with the ordered numbers that the project still holds. */
async function present(db: Db, row: NumberOrderRow): Promise<Order> {
  const ordered = JSON.parse(row.numbers) as string[]
  const numbers: ShownNumber[] = []
  for (const number of await numbersNamed(db, row.project_id, ordered)) numbers.push(await presentNumber(db, number))
  return { id: row.id, status: 'completed', currency: CURRENCY, created_at: row.created_at, ordered, numbers }
}

export const numberOrders = [
  route({
    method: 'get',
    path: '/number-orders',
    summary: 'List the orders of numbers, newest first',
    scope: 'service_configuration:read',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(NumberOrder) },
    run: ({ db, project, query }) =>
      pageBefore(query, { read: window => listOrders(db, project.id, window), present: row => present(db, row) }),
  }),

  route({
    method: 'get',
    path: '/number-orders/{order_id}',
    summary: 'Read an order of numbers',
    scope: 'service_configuration:read',
    replies: { 200: NumberOrder },
    async run({ db, project, params }) {
      const row = await findOrder(db, project.id, params.order_id)
      if (!row) return notFound(`number order ${params.order_id.slice(0, 60)}`)
      return { status: 200, body: await present(db, row) }
    },
  }),

  route({
    method: 'post',
    path: '/number-orders',
    summary: "Order numbers of the operator's inventory; all of them or none",
    scope: 'numbers:order',
    idempotent: true,
    applies: true,
    audit: { kind: 'numbers', action: 'number.ordered' },
    body: input('NumberOrderRequest', {
      numbers: Type.Array(E164, { minItems: 1, maxItems: MAX_ORDER, uniqueItems: true }),
    }),
    replies: { 201: NumberOrder },
    refusals: ['number_limit', 'order_unaffordable'],
    example: { numbers: ['+2342010000100'] },
    async run({ db, project, body, now, services }) {
      const taken = await takeAll(db, project, body.numbers, now)
      if (isRefusal(taken)) return taken
      const beyond = await beyondMeans(db, project, taken, services.clock.now())
      if (beyond) return beyond
      await chargeNumbersOf(db, project, services.clock.now())
      const order = {
        id: `ord_${newId.uuid()}`,
        project_id: project.id,
        numbers: JSON.stringify(body.numbers),
        created_at: now,
      }
      const shown = await present(db, await insertOrder(db, order))
      const after = (row: NumberRow): ShownNumber | null => shown.numbers.find(({ id }) => id === row.id) ?? null
      return {
        status: 201,
        headers: { Location: `/v1/number-orders/${order.id}` },
        body: shown,
        change: taken.map(row => numberChange(`Ordered ${row.e164}`, row, null, after(row))),
      }
    },
  }),
]

/** Takes all numbers from the inventory. A refusal rolls back the transaction, which returns those already taken. */
async function takeAll(
  trx: Trx,
  project: Pick<ProjectRow, 'id'>,
  wanted: readonly string[],
  now: string,
): Promise<readonly NumberRow[] | Refusal<'not_found'>> {
  const taken: NumberRow[] = []
  for (const e164 of wanted) {
    const row = await takeAvailableNumber(trx, e164, project.id, now)
    // The same answer for a number of another customer and for one that nobody has.
    if (!row) return notFound(`number ${e164} among those that are available`)
    taken.push(row)
  }
  return taken
}

/** Refuses numbers beyond the project's limit, or when the balance does not cover the months that are due. */
async function beyondMeans(
  trx: Trx,
  project: ProjectRow,
  taken: readonly NumberRow[],
  now_ms: number,
): Promise<Refusal<'number_limit' | 'order_unaffordable'> | null> {
  const { name } = project
  const limit = project.sandbox === 1 ? MAX_HELD.sandbox : MAX_HELD.live
  const held = await countTaken(trx, project.id)
  if (held > limit) return refuse('number_limit', { name, limit, value: held })
  const account = await findBillingAccount(trx, project.billing_account_id)
  const costs = taken.some(({ monthly_minor }) => monthly_minor > 0)
  const available = account ? availableMinor(account) : null
  if (project.sandbox === 1 || !costs || available === null) return null
  // The numbers of this order are held now, and those of earlier ones may not have been charged yet.
  const value = await dueForNumbersMinor(trx, project, now_ms)
  return value > available ? refuse('order_unaffordable', { name, value, limit: available }) : null
}
