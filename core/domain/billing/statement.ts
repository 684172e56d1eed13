/** A monthly statement: the cost of a project's calls, and the payments of the month. Amounts are in minor units. */
export interface Statement {
  /** `YYYY-MM` in the organization's time zone. */
  readonly period: string
  /** First and last day of the period. */
  readonly from: string
  readonly to: string
  readonly currency: string
  readonly organization_name: string
  readonly project_id: string
  readonly project_name: string
  readonly billing_account_id: string
  readonly destinations: readonly StatementLine[]
  readonly trunks: readonly StatementLine[]
  readonly payments: readonly StatementPayment[]
  readonly calls: number
  readonly billed_seconds: number
  readonly charges_minor: number
  readonly payments_minor: number
  /** Of the billing account, which other projects may share; null when it has none. */
  readonly opening_balance_minor: number | null
  readonly closing_balance_minor: number | null
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

interface StatementFacts
  extends Omit<Statement, 'from' | 'to' | 'calls' | 'billed_seconds' | 'charges_minor' | 'payments_minor'> {}

/** Builds a statement. Its destinations cover all calls; its trunks group the same calls differently. */
export function statementOf(facts: StatementFacts): Statement {
  const total = (of: (line: StatementLine) => number): number =>
    facts.destinations.reduce((sum, line) => sum + of(line), 0)
  return {
    ...facts,
    ...daysOf(facts.period),
    calls: total(line => line.calls),
    billed_seconds: total(line => line.billed_seconds),
    charges_minor: total(line => line.charge_minor),
    payments_minor: facts.payments.reduce((sum, payment) => sum + payment.amount_minor, 0),
  }
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
