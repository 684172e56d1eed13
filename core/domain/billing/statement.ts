import { dayOf } from '../rating/day.ts'
import { csvCell } from '../text/csv.ts'

/** The ledger lines of a month of a project's account (docs/http.md). Amounts are in minor units. */
export interface Statement {
  /** An account that pays later gets invoices. */
  readonly kind: 'statement' | 'invoice'
  /** `YYYY-MM` in the organization's time zone. */
  readonly period: string
  /** First and last day of the period. */
  readonly from: string
  readonly to: string
  /** The time zone in which its days begin and end; null in those that were issued before it was kept. */
  readonly time_zone: string | null
  readonly currency: string
  readonly organization_name: string
  readonly project_id: string
  readonly project_name: string
  readonly billing_account_id: string
  readonly destinations: readonly StatementLine[]
  readonly trunks: readonly StatementLine[]
  /** Months of numbers. */
  readonly numbers: readonly StatementLine[]
  readonly payments: readonly StatementPayment[]
  /** Calls that were charged. */
  readonly calls: number
  readonly billed_seconds: number
  /** Of calls and numbers. */
  readonly charges_minor: number
  readonly payments_minor: number
  /** What other projects that share the account were charged. */
  readonly others_minor: number
  /** Of the account; opening plus payments less all charges is closing. Null while nothing was ever booked. */
  readonly opening_balance_minor: number | null
  readonly closing_balance_minor: number | null
  /** The last ledger line that was there. A later one with an earlier time is in the next statement. */
  readonly last_position: number | null
}

/** The calls of one group, such as a destination or a trunk. */
export interface StatementLine {
  readonly id: string | null
  readonly label: string
  readonly calls: number
  readonly billed_seconds: number
  readonly charge_minor: number
}

interface StatementPayment {
  readonly at: string
  readonly kind: 'top_up' | 'adjustment'
  readonly amount_minor: number
  readonly note: string | null
}

type StatementFacts = Omit<
  Statement,
  'from' | 'to' | 'calls' | 'billed_seconds' | 'charges_minor' | 'payments_minor' | 'closing_balance_minor'
>

/** Builds a statement. Its destinations cover all calls; its trunks group the same calls differently. */
export function statementOf(facts: StatementFacts): Statement {
  const { destinations, numbers, payments, opening_balance_minor: opening, others_minor } = facts
  const total = (lines: readonly StatementLine[], of: (line: StatementLine) => number): number =>
    lines.reduce((sum, line) => sum + of(line), 0)
  const charges_minor = total([...destinations, ...numbers], line => line.charge_minor)
  const payments_minor = payments.reduce((sum, payment) => sum + payment.amount_minor, 0)
  const booked = charges_minor !== 0 || others_minor !== 0 || payments.length > 0
  return {
    ...facts,
    ...daysOf(facts.period),
    calls: total(destinations, line => line.calls),
    billed_seconds: total(destinations, line => line.billed_seconds),
    charges_minor,
    payments_minor,
    closing_balance_minor:
      opening === null && !booked ? null : (opening ?? 0) + payments_minor - charges_minor - others_minor,
  }
}

/** Reads a stored statement; those from before the ledger was their base had fewer members. */
export const readStored = (body: string): Statement => ({
  kind: 'statement' as const,
  numbers: [],
  others_minor: 0,
  last_position: null,
  time_zone: null,
  ...(JSON.parse(body) as Omit<Statement, 'kind' | 'numbers' | 'others_minor' | 'last_position' | 'time_zone'>),
})

/** What an account owes at the end of a period. */
export const dueMinor = ({ closing_balance_minor }: Statement): number => Math.max(0, -(closing_balance_minor ?? 0))

/** Returns the day of a moment as the statement counts days. */
export const dayIn = ({ time_zone }: Pick<Statement, 'time_zone'>, at: string): string =>
  dayOf(Date.parse(at), time_zone ?? 'UTC')

/** Writes a statement as CSV. The sum of the amounts of charges is negative, as in the ledger. */
export function statementCsv(statement: Statement): string {
  const line = (section: string, label: string, amount: number | null, calls = '', seconds = ''): string =>
    [section, csvCell(label), calls, seconds, amount ?? ''].join(',')
  const lines = (section: string, of: readonly StatementLine[]): string[] =>
    of.map(({ label, calls, billed_seconds, charge_minor }) =>
      line(section, label, -charge_minor, String(calls), String(billed_seconds)),
    )
  return [
    'section,label,calls,billed_seconds,amount_minor',
    line('opening', statement.from, statement.opening_balance_minor),
    ...lines('destination', statement.destinations),
    ...lines('number', statement.numbers),
    line('other projects', '', -statement.others_minor),
    ...statement.payments.map(({ at, kind, amount_minor, note }) =>
      line(kind === 'top_up' ? 'top-up' : 'adjustment', `${dayIn(statement, at)} ${note ?? ''}`.trim(), amount_minor),
    ),
    line('closing', statement.to, statement.closing_balance_minor),
    ...lines('by trunk', statement.trunks),
    '',
  ].join('\n')
}

const PERIOD = /^(\d{4})-(0[1-9]|1[0-2])$/

export const isPeriod = (text: string): boolean => PERIOD.test(text)

/** Returns the first and last day of a month. */
export function daysOf(period: string): { readonly from: string; readonly to: string } {
  const [year = 0, month = 1] = period.split('-').map(Number)
  // Day 0 of the next month is the last day of this one.
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return { from: `${period}-01`, to: `${period}-${last}` }
}

/** Returns the month before. */
export function periodBefore(period: string): string {
  const [year = 0, month = 1] = period.split('-').map(Number)
  return month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`
}

const MAX_PERIODS = 240

/** Returns the months from that of `first_day` to the one before that of `today`, oldest first. */
export function periodsBefore(first_day: string, today: string): string[] {
  const periods: string[] = []
  const end = today.slice(0, 7)
  let period = first_day.slice(0, 7)
  while (period < end && periods.length < MAX_PERIODS) {
    periods.push(period)
    const [year = 0, month = 1] = period.split('-').map(Number)
    period = month === 12 ? `${year + 1}-01` : `${year}-${String(month + 1).padStart(2, '0')}`
  }
  return periods
}

/** Formats 123450 minor units as `NGN 1,234.50`, with the two decimals of naira and kobo. */
export function moneyText(minor: number, currency: string): string {
  const digits = String(Math.abs(minor)).padStart(3, '0')
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',')
  return `${minor < 0 ? '-' : ''}${currency} ${whole}.${digits.slice(-2)}`
}
