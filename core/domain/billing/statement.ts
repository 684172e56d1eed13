/** A monthly statement: what a project's calls cost, and what was paid in the meantime. Amounts are minor units. */
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

/** Calls with something in common. */
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

/** Sums a statement up. The destinations are all calls; the trunks are the same calls, cut another way. */
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

/** First and last day of a month. */
export function daysOf(period: string): { readonly from: string; readonly to: string } {
  const [year = 0, month = 1] = period.split('-').map(Number)
  // Day 0 of the next month is the last one of this.
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return { from: `${period}-01`, to: `${period}-${last}` }
}

const MAX_PERIODS = 240

/** Months from the one of `first_day` up to, and not with, the one of `today`, oldest first. */
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

/** `NGN 1,234.50` of 123450 minor units; two decimals, as naira and kobo have. */
export function moneyText(minor: number, currency: string): string {
  const digits = String(Math.abs(minor)).padStart(3, '0')
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',')
  return `${minor < 0 ? '-' : ''}${currency} ${whole}.${digits.slice(-2)}`
}
