import type { Level } from '../../../domain/admission/index.ts'
import { availableMinor } from '../../../domain/billing/available.ts'
import { FactsChanged, marks, numberOf, numberOrNull, type Query, type Row, sized, textOf, tuples } from '../query.ts'
import { hourUntil, minuteOf } from './slots.ts'

/** The levels of a call with their daily and velocity caps at its admission. */
export type Caps = readonly (readonly [level: Level, id: string, daily: number | null, velocity: number | null])[]

export interface SpendChange {
  readonly caps: Caps
  readonly day: string
  readonly minute: number
  /** The payer's account; null when the payer is known to have none. */
  readonly account: string | null
  /** Money to reserve, in minor units; negative to return excess. */
  readonly minor: number
}

// Only subtrunks (spec) and projects (the operator) have a velocity cap. A subtrunk's hour is always counted, so that a
// new cap sees earlier spend. A project's is counted only under a cap, because counting would slow down every call.
const countsHour = (level: Level, velocity: number | null): boolean => level === 'subtrunk' || velocity !== null

// Stands for "no cap", because SQL comparisons with null are never true.
const NO_CAP = Number.MAX_SAFE_INTEGER

// An engine with types must know that the value is a number.
const MONEY_OF = ' when ? then cast(? as bigint)'

const HOLD_DAY = sized(
  count => `insert into spend_day (level, subject_id, day, spent_minor) values ${tuples(count, 4)}
    on conflict (subject_id, level, day) do update set spent_minor = spend_day.spent_minor + ?
    where spend_day.spent_minor + ? <= case spend_day.subject_id ${MONEY_OF.repeat(count)} end`,
)
const HOLD_BALANCE = `update billing_account set held_minor = held_minor + ?
    where id = ? and (prepaid = 0 or balance_minor + credit_minor - held_minor >= ?)`
const OVER_VELOCITY = sized(
  count => `select subject_id from spend_minute where subject_id in (${marks(count)}) and minute between ? and ?
    group by subject_id having sum(spent_minor) > case subject_id ${MONEY_OF.repeat(count)} end`,
)

/**
 * Reserves more money at every level, capped or not, so that a cap set later sees earlier spend.
 * @throws FactsChanged when a cap or the balance no longer covers it
 */
export function holdMoney(query: Query, { caps, day, minute, account, minor }: SpendChange): void {
  query.must(
    'a daily cap',
    caps.length,
    HOLD_DAY(caps.length),
    ...caps.flatMap(([level, id]) => [level, id, day, minor]),
    minor,
    minor,
    ...caps.flatMap(([, id, daily]) => [id, daily ?? NO_CAP]),
  )
  countHour(query, { caps, minute, minor })
  if (account !== null) query.must(`the balance of ${account}`, 1, HOLD_BALANCE, minor, account, minor)
}

/** Adds reserved money to the hour. @throws FactsChanged when a velocity cap no longer covers it */
export function countHour(query: Query, { caps, minute, minor }: Pick<SpendChange, 'caps' | 'minute' | 'minor'>): void {
  addToHour(query, caps, minute, minor)
  const capped = caps.filter(([, , , velocity]) => velocity !== null)
  if (capped.length > 0) refuseOverVelocity(query, capped, minute)
}

// Compares the sum after adding the money: the minute's row is locked by then and includes what others added.
function refuseOverVelocity(query: Query, capped: Caps, minute: number): void {
  const over = query(
    OVER_VELOCITY(capped.length),
    ...capped.map(([, id]) => id),
    ...hourUntil(minute),
    ...capped.flatMap(([, id, , velocity]) => [id, velocity]),
  )
  if (over.length > 0) throw new FactsChanged('a velocity cap')
}

const PRUNE_HOURS = 'delete from spend_minute where minute < ? or minute > ?'

/** Deletes minutes outside the rolling hour, and those from before the clock was set back. */
export function pruneHours(query: Query): number {
  const [first, last] = hourUntil(minuteOf(query.now_ms()))
  return query.changes(PRUNE_HOURS, first - 60, last + 1)
}

const ADD_DAY = sized(
  count => `insert into spend_day (level, subject_id, day, spent_minor) values ${tuples(count, 4)}
    on conflict (subject_id, level, day) do update set
      spent_minor = case when spend_day.spent_minor + ? < 0 then 0 else spend_day.spent_minor + ? end`,
)
const ADD_MINUTE = sized(
  count => `insert into spend_minute (level, subject_id, minute, spent_minor) values ${tuples(count, 4)}
    on conflict (subject_id, level, minute) do update set
      spent_minor = case when spend_minute.spent_minor + ? < 0 then 0 else spend_minute.spent_minor + ? end`,
)

/** Adds a call's cost beyond its reservation, or subtracts the excess of the reservation. Ignores caps. */
export function addToWindows(query: Query, caps: Caps, day: string, minute: number, minor: number): void {
  const added = caps.flatMap(([level, id]) => [level, id, day, Math.max(0, minor)])
  if (query.tally) query.tally.addToDay(caps, day, minor)
  else query(ADD_DAY(caps.length), ...added, minor, minor)
  addToHour(query, caps, minute, minor)
}

function addToHour(query: Query, caps: Caps, minute: number, minor: number): void {
  const counted = caps.filter(([level, , , velocity]) => countsHour(level, velocity))
  if (counted.length === 0) return
  query(
    ADD_MINUTE(counted.length),
    ...counted.flatMap(([level, id]) => [level, id, minute, Math.max(0, minor)]),
    minor,
    minor,
  )
}

interface Payer {
  /** Null when no account has this id. */
  readonly account: string | null
  /** Money that may still be reserved, in minor units; null means no ceiling. */
  readonly budget: number | null
}

const SPENT_ON = 'select spent_minor from spend_day where subject_id = ? and level = ? and day = ?'
const SPENT_SINCE = `select sum(spent_minor) as spent_minor from spend_minute where subject_id = ? and level = ?
    and minute between ? and ?`
const BALANCE = 'select prepaid, balance_minor, credit_minor, held_minor from billing_account where id = ?'

/** Computes what caps and balance leave for a running call. */
export function budgetOf(query: Query, caps: Caps, day: string, minute: number, account: string): Payer {
  const left: number[] = []
  const spent = (row: Row | undefined): number => numberOf(row ?? {}, 'spent_minor')
  for (const [level, id, daily, velocity] of caps) {
    if (daily !== null) left.push(daily - spent(query(SPENT_ON, id, level, day)[0]))
    if (velocity !== null) left.push(velocity - spent(query(SPENT_SINCE, id, level, ...hourUntil(minute))[0]))
  }
  const [payer] = query(BALANCE, account)
  const available = payer ? availableOf(payer) : null
  if (available !== null) left.push(available)
  return { account: payer ? account : null, budget: left.length === 0 ? null : Math.max(0, Math.min(...left)) }
}

/** Returns a payer's remaining money in minor units; null for a postpaid account. */
export const availableOf = (row: Row): number | null =>
  availableMinor({
    prepaid: numberOrNull(row, 'prepaid'),
    balance_minor: numberOf(row, 'balance_minor'),
    credit_minor: numberOf(row, 'credit_minor'),
    held_minor: numberOf(row, 'held_minor'),
  })

export const capsOf = (row: Row): Caps => JSON.parse(textOf(row, 'caps')) as Caps
