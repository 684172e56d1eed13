import { prefixesOf } from '../../../domain/policies/destinations.ts'
import {
  type CallCharge,
  type CallPrice,
  callCharge,
  callPrice,
  type PriceInputs,
} from '../../../domain/rating/explain.ts'
import { affordableSeconds, billedMinor, billedSeconds, chargeMinor } from '../../../domain/rating/price.ts'
import { MICRO_PER_MINOR } from '../../../domain/rating/types.ts'
import { readCost } from '../admission/destination.ts'
import { marks, numberOf, numberOrNull, type Query, type Row, sized, textOf, textOrNull } from '../query.ts'
import { minuteOf, returnSlots } from './slots.ts'
import { addToWindows, budgetOf, capsOf, holdMoney } from './spend.ts'

export interface ExtendInput {
  readonly call_sid: string
  /** Seconds since the answer. */
  readonly elapsed_seconds: number
  /** How far ahead money is reserved, so that not every second costs a transaction. */
  readonly ahead_seconds: number
  /** Only for tests: the store's time, epoch ms. */
  readonly store_ms?: number
}

export interface Extension {
  /** Seconds after the answer that are paid for; null when the call costs nothing. */
  readonly paid_until_seconds: number | null
  /** No more can be paid: hang up the call at `paid_until_seconds`. */
  readonly exhausted: boolean
}

const RESERVED = `select project_id, billing_account_id, billing, direction, destination, price_book_id,
    price_book_revision, rate_prefix, rate_label, rate_micro, rate_unit, increment_initial_seconds,
    increment_additional_seconds, currency, day, held_minute, caps, held_minor, paid_until_seconds, settled_at,
    duration_seconds, billed_seconds, charge_minor, begun_at
  from reservation where call_sid = ?`
const EXTEND = `update reservation set held_minor = held_minor + ?, paid_until_seconds = ?, held_minute = ?
    where call_sid = ? and settled_at is null and held_minor = ?`

/** Reserves money for the next increments of a running call, as far as caps and balance allow. */
export function extend(query: Query, { call_sid, elapsed_seconds, ahead_seconds, ...given }: ExtendInput): Extension {
  const row = query(`${RESERVED} and settled_at is null`, call_sid)[0]
  const paid_until = row ? numberOrNull(row, 'paid_until_seconds') : null
  if (!row || paid_until === null) return { paid_until_seconds: paid_until, exhausted: false }
  const wanted = elapsed_seconds + ahead_seconds
  if (wanted <= paid_until) return { paid_until_seconds: paid_until, exhausted: false }
  const minute = minuteOf(given.store_ms ?? query.now_ms())
  const inputs = inputsOf(row, wanted)
  const held = numberOf(row, 'held_minor')
  const [caps, day] = [capsOf(row), textOf(row, 'day')]
  // The caps of the admission apply: lowering a ceiling does not end running calls (issue 6).
  const { budget, account } = budgetOf(query, caps, day, minute, textOf(row, 'billing_account_id'))
  const wish = billedSeconds(inputs, wanted)
  const reach = budget === null ? wish : Math.min(wish, affordableSeconds(inputs, held + budget) ?? wish)
  if (reach <= paid_until) return { paid_until_seconds: paid_until, exhausted: true }
  const minor = billedMinor(inputs, reach) - held
  query.must(`the reservation of ${call_sid}`, 1, EXTEND, minor, reach, minute, call_sid, held)
  if (minor > 0) holdMoney(query, { caps, day, minute, account, minor })
  return { paid_until_seconds: reach, exhausted: reach < wish }
}

export interface ReleaseInput {
  readonly call_sid: string
  /** Whole seconds from answer to end, as in the CDR. */
  readonly duration_seconds: number
  readonly answered: boolean
  /** The carrier that took the call, whose cost is noted. */
  readonly carrier_id?: string | null
  /** Wall time, epoch ms. */
  readonly now_ms: number
}

export interface Release {
  /** Slots that this run of the procedure released; 0 when all were already released. */
  readonly released: number
  /** Null for a call without a price. */
  readonly price: CallCharge | null
}

/** Releases the slots of a call and settles its money. Idempotent. */
export function release(query: Query, input: ReleaseInput): Release {
  const ended_at = new Date(input.now_ms).toISOString()
  const released = returnSlots(query, input.call_sid, ended_at)
  return { released, ...settle(query, input, ended_at) }
}

const SETTLE = `update reservation set settled_at = ?, duration_seconds = ?, billed_seconds = ?, charge_minor = ?,
    carrier_id = ?, cost_minor = ?, held_minor = 0,
    call_position = (select position from call where call.sid = reservation.call_sid)
    where call_sid = ? and settled_at is null and held_minor = ?`
const COST = sized(
  count => `select cost_minor from carrier_route where carrier_id = ? and prefix in (${marks(count)})
    order by length(prefix) desc, priority limit 1`,
)

/**
 * Returns what a carrier takes for a call, in minor units rounded up: by its cost book, else for calls to it by its
 * route, by the second. Null without a carrier, or when neither says it.
 */
function costOf(query: Query, row: Row, carrier_id: string | null, duration_seconds: number): number | null {
  if (carrier_id === null) return null
  const direction = textOf(row, 'direction') === 'inbound' ? 'inbound' : 'outbound'
  const digits = textOf(row, 'destination').replace('+', '')
  const rate = readCost(query, carrier_id, { direction, digits, at: textOf(row, 'begun_at') })
  if (rate) return chargeMinor(rate, duration_seconds)
  if (direction === 'inbound') return null
  const prefixes = prefixesOf(digits)
  const route = query(COST(prefixes.length), carrier_id, ...prefixes)[0]
  if (!route) return null
  const rate_micro = numberOf(route, 'cost_minor') * MICRO_PER_MINOR
  const by_second = { increment_initial_seconds: 1, increment_additional_seconds: 1 }
  return chargeMinor({ rate_micro, rate_unit: 'minute', ...by_second }, duration_seconds)
}

function settle(query: Query, input: ReleaseInput, settled_at: string): Omit<Release, 'released'> {
  const row = query(RESERVED, input.call_sid)[0]
  if (!row) return { price: null }
  if (textOrNull(row, 'settled_at') !== null)
    return { price: callCharge(inputsOf(row, numberOf(row, 'duration_seconds'))) }
  const duration_seconds = input.answered ? Math.max(1, Math.floor(input.duration_seconds)) : 0
  const price = callCharge(inputsOf(row, duration_seconds))
  const { billed_seconds, amount_minor: charge_minor } = price
  const held = numberOf(row, 'held_minor')
  const { carrier_id = null } = input
  query.must(
    `the reservation of ${input.call_sid}`,
    1,
    SETTLE,
    settled_at,
    duration_seconds,
    billed_seconds,
    charge_minor,
    carrier_id,
    costOf(query, row, carrier_id, duration_seconds),
    input.call_sid,
    held,
  )
  if (charge_minor !== held)
    addToWindows(query, capsOf(row), textOf(row, 'day'), numberOf(row, 'held_minute'), charge_minor - held)
  if (held !== 0 || charge_minor !== 0) charge(query, row, input.call_sid, held, charge_minor, settled_at)
  return { price }
}

/** Returns the price of a settled call in words; null for a call without a price. */
export function settledPrice(query: Query, call_sid: string): CallPrice | null {
  const row = query(RESERVED, call_sid)[0]
  if (!row || textOrNull(row, 'settled_at') === null) return null
  return callPrice(inputsOf(row, numberOf(row, 'duration_seconds')))
}

const INSERT_CHARGE = `insert into ledger (billing_account_id, project_id, kind, amount_minor, balance_after_minor,
    call_sid, at)
  values (?, ?, 'charge', ?, coalesce((select balance_minor from billing_account where id = ?), 0), ?, ?)`

function charge(query: Query, row: Row, call_sid: string, held: number, charge_minor: number, at: string): void {
  const id = textOf(row, 'billing_account_id')
  if (query.tally) {
    const project_id = textOf(row, 'project_id')
    query.tally.charge({ account: id, project_id, call_sid, held_minor: held, charge_minor, at })
    return
  }
  query(
    `update billing_account set balance_minor = balance_minor - ?,
      held_minor = case when held_minor > ? then held_minor - ? else 0 end where id = ?`,
    charge_minor,
    held,
    held,
    id,
  )
  if (charge_minor !== 0) query(INSERT_CHARGE, id, textOf(row, 'project_id'), -charge_minor, id, call_sid, at)
}

const inputsOf = (row: Row, duration_seconds: number): PriceInputs => ({
  billing: textOf(row, 'billing') === 'free' ? 'free' : 'rated',
  direction: textOf(row, 'direction') === 'inbound' ? 'inbound' : 'outbound',
  destination: textOf(row, 'destination'),
  currency: textOf(row, 'currency'),
  price_book_id: textOrNull(row, 'price_book_id'),
  price_book_revision: numberOrNull(row, 'price_book_revision'),
  rate_prefix: textOrNull(row, 'rate_prefix'),
  rate_label: textOrNull(row, 'rate_label'),
  rate_micro: numberOf(row, 'rate_micro'),
  rate_unit: textOf(row, 'rate_unit') === 'second' ? 'second' : 'minute',
  increment_initial_seconds: numberOf(row, 'increment_initial_seconds'),
  increment_additional_seconds: numberOf(row, 'increment_additional_seconds'),
  duration_seconds,
})
