import { type Selectable, sql } from 'kysely'
import { daysOf, type Statement, type StatementLine, statementOf } from '../../domain/billing/statement.ts'
import { dayOf } from '../../domain/rating/index.ts'
import type { BillingDocumentTable, Db, OrganizationTable, ProjectTable, Trx } from '../db.ts'

/** Sums of call costs for reports, read from the reservations, which are the inputs of every charge. */

type BillingDocumentRow = Selectable<BillingDocumentTable>

export const GROUPS = ['day', 'trunk', 'destination'] as const
export type UsageGroup = (typeof GROUPS)[number]

interface UsageFilter {
  /** First and last day in the organization's time zone. */
  readonly from: string
  readonly to: string
  readonly trunk_id?: string
  /** Only calls of this subaccount's trunks. */
  readonly subaccount_id?: string
}

export interface UsageRow {
  /** Day, trunk id or destination name; null for calls without one. */
  readonly key: string | null
  readonly calls: number
  readonly answered_calls: number
  readonly billed_seconds: number
  readonly settled_minor: number
  /** Reserved by running calls. */
  readonly pending_minor: number
}

const KEY = {
  day: 'reservation.day',
  trunk: 'call.trunk_id',
  destination: 'reservation.rate_label',
} as const

/** Sums a project's priced calls by day, trunk or destination. Days are in order, the others by cost. */
export async function usageBy(
  db: Db | Trx,
  project_id: string,
  group: UsageGroup,
  filter: UsageFilter,
  limit: number,
): Promise<UsageRow[]> {
  let query = db
    .selectFrom('reservation')
    .leftJoin('call', 'call.sid', 'reservation.call_sid')
    .select(eb => [
      eb.ref(KEY[group]).as('key'),
      eb.fn.countAll<number>().as('calls'),
      eb.fn.count<number>('call.answered_at').as('answered'),
      eb.fn.sum<number>('reservation.billed_seconds').as('billed'),
      eb.fn.sum<number>('reservation.charge_minor').as('settled'),
      eb.fn.sum<number>('reservation.held_minor').as('pending'),
    ])
    .where('reservation.project_id', '=', project_id)
    .where('reservation.day', '>=', filter.from)
    .where('reservation.day', '<=', filter.to)
    .groupBy(KEY[group])
    .limit(limit)
  const { trunk_id, subaccount_id } = filter
  if (trunk_id !== undefined) query = query.where('call.trunk_id', '=', trunk_id)
  if (subaccount_id !== undefined)
    query = query.where('call.trunk_id', 'in', eb =>
      eb.selectFrom('trunk').select('trunk.id').where('trunk.subaccount_id', '=', subaccount_id),
    )
  const ordered = group === 'day' ? query.orderBy('key') : query.orderBy('settled', 'desc').orderBy('key')
  return (await ordered.execute()).map(row => ({
    key: row.key,
    calls: Number(row.calls),
    answered_calls: Number(row.answered),
    billed_seconds: Number(row.billed ?? 0),
    settled_minor: Number(row.settled ?? 0),
    pending_minor: Number(row.pending ?? 0),
  }))
}

/** Returns the names of trunks by id, including released ones. */
export async function trunkNames(db: Db | Trx, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('trunk')
    .select(['id', 'name'])
    .where('id', 'in', [...ids])
    .execute()
  return new Map(rows.map(row => [row.id, row.name]))
}

const MAX_LINES = 5000

/** Computes the statement of a month from the current rows. */
export async function readStatement(
  db: Db | Trx,
  project: Selectable<ProjectTable>,
  organization: Selectable<OrganizationTable>,
  period: string,
): Promise<Statement> {
  const days = daysOf(period)
  const destinations = await usageBy(db, project.id, 'destination', days, MAX_LINES)
  const by_trunk = await usageBy(db, project.id, 'trunk', days, MAX_LINES)
  const names = await trunkNames(
    db,
    by_trunk.flatMap(({ key }) => key ?? []),
  )
  const line = (row: UsageRow, label: string): StatementLine => ({
    id: row.key,
    label,
    calls: row.calls,
    billed_seconds: row.billed_seconds,
    charge_minor: row.settled_minor,
  })
  const account = project.billing_account_id
  const zone = organization.time_zone
  const in_period = (at: string): boolean => dayOf(Date.parse(at), zone).startsWith(period)
  const payments = (await ledgerAround(db, account, days)).filter(({ at }) => in_period(at))
  return statementOf({
    period,
    currency: project.currency,
    organization_name: organization.name,
    project_id: project.id,
    project_name: project.name,
    billing_account_id: account,
    destinations: destinations.map(row => line(row, row.key ?? 'Without a rate')),
    trunks: by_trunk.map(row => line(row, row.key === null ? 'Not through a trunk' : (names.get(row.key) ?? row.key))),
    payments: payments.map(({ at, kind, amount_minor, note }) => ({
      at,
      kind: kind === 'top_up' ? 'top_up' : 'adjustment',
      amount_minor,
      note,
    })),
    opening_balance_minor: await balanceBefore(db, account, days.from, zone),
    closing_balance_minor: await balanceBefore(db, account, nextDay(days.to), zone),
  })
}

/** Exceeds any time zone's offset from UTC, which is at most 14 hours. */
const DAY_MS = 86_400_000
const nextDay = (day: string): string => new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10)
const around = (day: string, days: number): string => new Date(Date.parse(day) + days * DAY_MS).toISOString()

const ledgerAround = (db: Db | Trx, account: string, { from, to }: { from: string; to: string }) =>
  db
    .selectFrom('ledger')
    .select(['at', 'kind', 'amount_minor', 'note'])
    .where('billing_account_id', '=', account)
    .where('kind', '!=', 'charge')
    .where('at', '>=', around(from, -1))
    .where('at', '<', around(to, 2))
    .orderBy('position')
    .execute()

/** Returns an account's balance at the beginning of a day; null when nothing was booked before it. */
async function balanceBefore(db: Db | Trx, account: string, day: string, zone: string): Promise<number | null> {
  const rows = await db
    .selectFrom('ledger')
    .select(['at', 'balance_after_minor'])
    .where('billing_account_id', '=', account)
    .where('at', '<', beginOf(day, zone))
    .orderBy('position', 'desc')
    .limit(1)
    .execute()
  return rows[0]?.balance_after_minor ?? null
}

/** Finds when a day of a time zone begins, by binary search, because offsets change with daylight saving time. */
function beginOf(day: string, zone: string): string {
  let before = Date.parse(day) - DAY_MS
  let after = Date.parse(day) + DAY_MS
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (dayOf(middle, zone) < day) before = middle
    else after = middle
  }
  return new Date(after).toISOString()
}

export const listBillingDocuments = (db: Db | Trx, project_id: string): Promise<BillingDocumentRow[]> =>
  db.selectFrom('billing_document').selectAll().where('project_id', '=', project_id).orderBy('period', 'desc').execute()

export const findBillingDocument = (
  db: Db | Trx,
  project_id: string,
  period: string,
): Promise<BillingDocumentRow | undefined> =>
  db
    .selectFrom('billing_document')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('period', '=', period)
    .executeTakeFirst()

/** Issues a statement. Idempotent: a second process that issues the same statement changes nothing. */
export async function issueStatement(db: Db | Trx, statement: Statement, issued_at: string): Promise<void> {
  await db
    .insertInto('billing_document')
    .values({
      project_id: statement.project_id,
      period: statement.period,
      issued_at,
      body: JSON.stringify(statement),
    })
    .onConflict(conflict => conflict.columns(['project_id', 'period']).doNothing())
    .execute()
}

/** Reports whether calls of a month are still running or unsettled. */
export async function isUnsettled(db: Db | Trx, project_id: string, period: string): Promise<boolean> {
  const { from, to } = daysOf(period)
  const row = await db
    .selectFrom('reservation')
    .select(sql<number>`1`.as('one'))
    .where('project_id', '=', project_id)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .where('settled_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
