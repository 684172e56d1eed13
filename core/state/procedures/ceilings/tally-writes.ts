import type { Value } from '../query.ts'
import { type Counter, type Layer, type LedgerRow, numberNow, partsOf, takesOf } from './tally-rows.ts'

/** A statement that writes and returns no rows. */
interface Write {
  readonly sql: string
  readonly values: readonly Value[]
  /** What has changed when it changes fewer rows than `least`; null: their number does not matter. */
  readonly facts: string | null
  readonly least: number
}

/** The tables of what is counted. */
export const TALLIED: ReadonlySet<string> = new Set(['level_use', 'spend_day', 'billing_account', 'ledger'])

// One statement for all rows of a table, whatever their number: their columns are arrays. A row whose former value is
// known must still have it, and gets the new one; to others the turn adds.

const SET_USES = `update level_use as u set live = v.live, takes = v.takes
  from unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[]) as v (subject_id, level, live, takes, was)
  where u.subject_id = v.subject_id and u.level = v.level and u.live = v.was`
const ADD_USES = `update level_use as u set live = greatest(u.live + v.more, v.least)
  from unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[]) as v (subject_id, level, more, least)
  where u.subject_id = v.subject_id and u.level = v.level`

const INSERT_DAYS = `insert into spend_day (subject_id, level, day, spent_minor)
  select v.subject_id, v.level, v.day, v.spent from unnest(?::text[], ?::text[], ?::text[], ?::bigint[])
    as v (subject_id, level, day, spent)
  on conflict (subject_id, level, day) do nothing`
const SET_DAYS = `update spend_day as d set spent_minor = v.spent
  from unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[]) as v (subject_id, level, day, spent, was)
  where d.subject_id = v.subject_id and d.level = v.level and d.day = v.day and d.spent_minor = v.was`
const ADD_DAYS = `update spend_day as d set spent_minor = greatest(d.spent_minor + v.more, v.least)
  from unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[]) as v (subject_id, level, day, more, least)
  where d.subject_id = v.subject_id and d.level = v.level and d.day = v.day`

const SET_ACCOUNTS = `update billing_account as b set balance_minor = v.balance, held_minor = v.held
  from unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
    as v (id, balance, held, was_balance, was_held)
  where b.id = v.id and b.balance_minor = v.was_balance and b.held_minor = v.was_held`
const ADD_ACCOUNTS = `update billing_account as b
  set balance_minor = b.balance_minor + v.balance, held_minor = greatest(b.held_minor + v.held, v.least)
  from unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) as v (id, balance, held, least) where b.id = v.id`
const INSERT_LEDGER = `insert into ledger
    (billing_account_id, project_id, kind, amount_minor, balance_after_minor, call_sid, at)
  select v.account, v.project_id, 'charge', v.amount,
    coalesce((select b.balance_minor + v.added from billing_account b where b.id = v.account), 0), v.call_sid, v.at
  from unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[])
    with ordinality as v (account, project_id, amount, added, call_sid, at, place) order by v.place`

/** Returns the writes for what was counted. */
export function tallied({ uses, days, accounts, ledger }: Layer): Write[] {
  return [...usesWritten(uses), ...daysWritten(days), ...ledgerWritten(ledger), ...accountsWritten(accounts)]
}

const isChanged = ({ add, least }: Counter): boolean => add !== 0 || least !== -Infinity
const isKnown = ({ was }: Counter): boolean => was !== undefined

function usesWritten(uses: Layer['uses']): Write[] {
  const rows = [...uses].filter(([, { live, takes }]) => isChanged(live) || takes !== undefined)
  const known = rows.filter(([, { live }]) => isKnown(live))
  const others = rows.filter(([, { live }]) => !isKnown(live))
  return [
    ...write(SET_USES, 'slots', known.length, [
      ...keys(known, 2),
      known.map(([, { live }]) => numberNow(live)),
      known.map(([, use]) => takesOf(use)),
      known.map(([, { live }]) => live.was ?? 0),
    ]),
    ...write(ADD_USES, null, others.length, [
      ...keys(others, 2),
      others.map(([, { live }]) => live.add),
      others.map(([, { live }]) => live.least),
    ]),
  ]
}

function daysWritten(days: Layer['days']): Write[] {
  const rows = [...days].filter(([, { spent }]) => isChanged(spent))
  const missing = rows.filter(([, { spent }]) => spent.was === null)
  const known = rows.filter(([, { spent }]) => typeof spent.was === 'number')
  const others = rows.filter(([, { spent }]) => !isKnown(spent))
  return [
    ...write(INSERT_DAYS, 'a daily cap', missing.length, [
      ...keys(missing, 3),
      missing.map(([, { spent }]) => numberNow(spent)),
    ]),
    ...write(SET_DAYS, 'a daily cap', known.length, [
      ...keys(known, 3),
      known.map(([, { spent }]) => numberNow(spent)),
      known.map(([, { spent }]) => spent.was ?? 0),
    ]),
    ...write(INSERT_DAYS, null, others.length, [...keys(others, 3), others.map(() => 0)]),
    ...write(ADD_DAYS, null, others.length, [
      ...keys(others, 3),
      others.map(([, { spent }]) => spent.add),
      others.map(([, { spent }]) => spent.least),
    ]),
  ]
}

// The balance after each charge counts from the balance before this turn.
const ledgerWritten = (ledger: readonly LedgerRow[]): Write[] =>
  write(INSERT_LEDGER, null, ledger.length, [
    ledger.map(({ account }) => account),
    ledger.map(({ project_id }) => project_id),
    ledger.map(({ charge_minor }) => -charge_minor),
    ledger.map(({ added }) => added),
    ledger.map(({ call_sid }) => call_sid),
    ledger.map(({ at }) => at),
  ])

function accountsWritten(accounts: Layer['accounts']): Write[] {
  const rows = [...accounts].filter(([, { balance, held }]) => isChanged(balance) || isChanged(held))
  const known = rows.filter(([, { held }]) => isKnown(held))
  const others = rows.filter(([, { held }]) => !isKnown(held))
  return [
    ...write(SET_ACCOUNTS, 'a balance', known.length, [
      ...keys(known, 1),
      known.map(([, { balance }]) => numberNow(balance)),
      known.map(([, { held }]) => numberNow(held)),
      known.map(([, { balance }]) => balance.was ?? 0),
      known.map(([, { held }]) => held.was ?? 0),
    ]),
    ...write(ADD_ACCOUNTS, null, others.length, [
      ...keys(others, 1),
      others.map(([, { balance }]) => balance.add),
      others.map(([, { held }]) => held.add),
      others.map(([, { held }]) => held.least),
    ]),
  ]
}

/** Returns a write of so many rows, which all must be written unless `facts` is null; none for no rows. */
function write(sql: string, facts: string | null, rows: number, columns: readonly (readonly Value[])[]): Write[] {
  return rows === 0 ? [] : [{ sql, values: columns.map(arrayOf), facts, least: facts === null ? 0 : rows }]
}

const keys = (rows: readonly (readonly [key: string, row: unknown])[], parts: number): string[][] =>
  Array.from({ length: parts }, (_, part) => rows.map(([key]) => partsOf(key)[part] ?? ''))

/** Writes values as PostgreSQL reads an array. A number that is not finite stands for none. */
const arrayOf = (values: readonly Value[]): string => `{${values.map(elementOf).join(',')}}`

function elementOf(value: Value): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'null'
  return value === null ? 'null' : `"${value.replace(/["\\]/g, '\\$&')}"`
}
