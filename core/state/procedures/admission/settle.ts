import { type PriceInputs, priceOf } from '../../../domain/rating/explain.ts'
import { affordableSeconds, billedMinor, billedSeconds } from '../../../domain/rating/price.ts'
import { addSpend, addToWindows, type Caps } from './spend.ts'
import { number, numberOrNull, type Query, type Row, steadyNow, text, textOrNull } from './steps.ts'

export interface ExtendInput {
  readonly call_sid: string
  /** Seconds since the answer. */
  readonly elapsed_seconds: number
  /** Money is held this far ahead, so that not every second costs a transaction. */
  readonly ahead_seconds: number
  readonly steady_ms?: number
}

export interface Extension {
  /** Seconds after the answer that are paid for now; null when the call costs nothing. */
  readonly paid_until_seconds: number | null
  /** No more can be paid: cut the call at `paid_until_seconds`. */
  readonly exhausted: boolean
}

const RESERVED = `select project_id, billing_account_id, billing, destination, price_book_id, price_book_revision,
    rate_prefix, rate_label, rate_micro, rate_unit, increment_initial_seconds, increment_additional_seconds, currency,
    day, held_minute, caps, held_minor, paid_until_seconds, settled_at, billed_seconds, charge_minor
  from reservation where call_sid = ?`
const OPEN_LEASES = `select id, subtrunk_id, trunk_id, policy_id, parent_policy_id, subaccount_id, project_id
  from lease where call_sid = ? and ended_at is null`

/** Holds money for the next increments of a running call, as far as caps and balance allow. */
export function extend(query: Query, { call_sid, elapsed_seconds, ahead_seconds, ...given }: ExtendInput): Extension {
  const row = query(`${RESERVED} and settled_at is null`, call_sid)[0]
  const paid_until = row ? numberOrNull(row, 'paid_until_seconds') : null
  if (!row || paid_until === null) return { paid_until_seconds: paid_until, exhausted: false }
  const wanted = elapsed_seconds + ahead_seconds
  if (wanted <= paid_until) return { paid_until_seconds: paid_until, exhausted: false }
  const steady_ms = given.steady_ms ?? steadyNow()
  const inputs = inputsOf(row, wanted)
  const held = number(row, 'held_minor')
  const budget = budgetOf(query, row, steady_ms)
  const wish = billedSeconds(inputs, wanted)
  const reach = budget === null ? wish : Math.min(wish, affordableSeconds(inputs, held + budget) ?? wish)
  if (reach <= paid_until) return { paid_until_seconds: paid_until, exhausted: true }
  const minor = billedMinor(inputs, reach) - held
  const minute = Math.floor(steady_ms / 60_000)
  addSpend(query, {
    caps: capsOf(row),
    day: text(row, 'day'),
    minute,
    account: text(row, 'billing_account_id'),
    minor,
  })
  query(
    'update reservation set held_minor = held_minor + ?, paid_until_seconds = ?, held_minute = ? where call_sid = ?',
    minor,
    reach,
    minute,
    call_sid,
  )
  return { paid_until_seconds: reach, exhausted: reach < wish }
}

/**
 * Money that may still be held, in minor units; null is no ceiling. The caps are those of the admission: a ceiling that
 * is lowered meanwhile ends no running call (issue 6).
 */
function budgetOf(query: Query, row: Row, steady_ms: number): number | null {
  const left: number[] = []
  const minute = Math.floor(steady_ms / 60_000)
  for (const [level, id, daily, velocity] of capsOf(row)) {
    if (daily !== null) {
      const spent = query(
        'select spent_minor from spend_day where subject_id = ? and level = ? and day = ?',
        id,
        level,
        text(row, 'day'),
      )
      left.push(daily - number(spent[0] ?? {}, 'spent_minor'))
    }
    if (velocity !== null) {
      const spent = query(
        `select sum(spent_minor) as spent_minor from spend_minute where subject_id = ? and level = ?
        and minute between ? and ?`,
        id,
        level,
        minute - 60,
        minute,
      )
      left.push(velocity - number(spent[0] ?? {}, 'spent_minor'))
    }
  }
  const account = query('select * from billing_account where id = ?', text(row, 'billing_account_id'))[0]
  if (account && number(account, 'prepaid') === 1)
    left.push(number(account, 'balance_minor') + number(account, 'credit_minor') - number(account, 'held_minor'))
  return left.length === 0 ? null : Math.max(0, Math.min(...left))
}

export interface ReleaseInput {
  readonly call_sid: string
  /** Whole seconds from answer to end, as in the CDR. */
  readonly duration_seconds: number
  readonly answered: boolean
  /** Wall time, epoch ms. */
  readonly now_ms: number
}

export interface Release {
  /** Slots given back by this call of the procedure: 0 when all had been before. */
  readonly released: number
  /** Null for a call that had no price. */
  readonly charge_minor: number | null
  readonly billed_seconds: number | null
}

/** Gives the slots of a call back and settles its money; safe to repeat. */
export function release(query: Query, input: ReleaseInput): Release {
  const ended_at = new Date(input.now_ms).toISOString()
  const leases = query(OPEN_LEASES, input.call_sid)
  for (const lease of leases) endLease(query, lease, ended_at)
  return { released: leases.length, ...settle(query, input, ended_at) }
}

const HELD_AT = [
  ['subtrunk', 'subtrunk_id'],
  ['trunk', 'trunk_id'],
  ['policy', 'policy_id'],
  ['policy', 'parent_policy_id'],
  ['subaccount', 'subaccount_id'],
  ['project', 'project_id'],
] as const

function endLease(query: Query, lease: Row, ended_at: string): void {
  query('update lease set ended_at = ? where id = ?', ended_at, number(lease, 'id'))
  const held = HELD_AT.flatMap(([level, column]) => {
    const id = textOrNull(lease, column)
    return id === null ? [] : [{ level, id }]
  })
  query(
    `update level_use set live = case when live > 0 then live - 1 else 0 end
    where (subject_id, level) in (values ${held.map(() => '(?, ?)').join(', ')})`,
    ...held.flatMap(({ level, id }) => [id, level]),
  )
}

function settle(query: Query, input: ReleaseInput, settled_at: string): Omit<Release, 'released'> {
  const row = query(RESERVED, input.call_sid)[0]
  if (!row) return { charge_minor: null, billed_seconds: null }
  if (textOrNull(row, 'settled_at') !== null)
    return { charge_minor: numberOrNull(row, 'charge_minor'), billed_seconds: numberOrNull(row, 'billed_seconds') }
  const duration_seconds = input.answered ? Math.max(1, Math.floor(input.duration_seconds)) : 0
  const { billed_seconds, charge_minor } = priceOf(inputsOf(row, duration_seconds))
  const held = number(row, 'held_minor')
  query(
    `update reservation set settled_at = ?, duration_seconds = ?, billed_seconds = ?, charge_minor = ?, held_minor = 0
    where call_sid = ?`,
    settled_at,
    duration_seconds,
    billed_seconds,
    charge_minor,
    input.call_sid,
  )
  if (charge_minor !== held)
    addToWindows(query, capsOf(row), text(row, 'day'), number(row, 'held_minute'), charge_minor - held)
  if (held !== 0 || charge_minor !== 0) charge(query, row, input.call_sid, held, charge_minor, settled_at)
  return { charge_minor, billed_seconds }
}

function charge(query: Query, row: Row, call_sid: string, held: number, charge_minor: number, at: string): void {
  const id = text(row, 'billing_account_id')
  query(
    `update billing_account set balance_minor = balance_minor - ?,
      held_minor = case when held_minor > ? then held_minor - ? else 0 end where id = ?`,
    charge_minor,
    held,
    held,
    id,
  )
  if (charge_minor === 0) return
  const account = query('select balance_minor from billing_account where id = ?', id)[0]
  query(
    `insert into ledger (billing_account_id, project_id, kind, amount_minor, balance_after_minor, call_sid, at)
    values (?, ?, 'charge', ?, ?, ?, ?)`,
    id,
    text(row, 'project_id'),
    -charge_minor,
    account ? number(account, 'balance_minor') : 0,
    call_sid,
    at,
  )
}

export const capsOf = (row: Row): Caps => JSON.parse(text(row, 'caps')) as Caps

export const inputsOf = (row: Row, duration_seconds: number): PriceInputs => ({
  billing: text(row, 'billing') === 'free' ? 'free' : 'rated',
  destination: text(row, 'destination'),
  currency: text(row, 'currency'),
  price_book_id: textOrNull(row, 'price_book_id'),
  price_book_revision: numberOrNull(row, 'price_book_revision'),
  rate_prefix: textOrNull(row, 'rate_prefix'),
  rate_label: textOrNull(row, 'rate_label'),
  rate_micro: number(row, 'rate_micro'),
  rate_unit: text(row, 'rate_unit') === 'second' ? 'second' : 'minute',
  increment_initial_seconds: number(row, 'increment_initial_seconds'),
  increment_additional_seconds: number(row, 'increment_additional_seconds'),
  duration_seconds,
})
