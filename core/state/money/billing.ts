import { type Selectable, sql } from 'kysely'
import { daysOf, type Statement, type StatementLine, statementOf } from '../../domain/billing/statement.ts'
import { dayOf } from '../../domain/rating/index.ts'
import {
  ascendingFromNull,
  type BillingDocumentTable,
  type Db,
  descendingToNull,
  type OrganizationTable,
  type ProjectTable,
  type Trx,
} from '../db.ts'

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
  /** `inbound`: calls that carriers brought to numbers of the project. */
  readonly direction?: 'inbound' | 'outbound'
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
  const { trunk_id, subaccount_id, direction } = filter
  if (direction !== undefined) query = query.where('reservation.direction', '=', direction)
  if (trunk_id !== undefined) query = query.where('call.trunk_id', '=', trunk_id)
  if (subaccount_id !== undefined)
    query = query.where('call.trunk_id', 'in', eb =>
      eb.selectFrom('trunk').select('trunk.id').where('trunk.subaccount_id', '=', subaccount_id),
    )
  const ordered =
    group === 'day'
      ? query.orderBy('key')
      : query.orderBy('settled', descendingToNull).orderBy('key', ascendingFromNull)
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

/**
 * Computes the statement of a month from the ledger. `before`: the statement of the month before, when it was issued;
 * lines that were written after it with an earlier time are in this one.
 */
export async function readBill(
  db: Db | Trx,
  project: Selectable<ProjectTable>,
  organization: Selectable<OrganizationTable>,
  period: string,
  before?: Statement,
): Promise<Statement> {
  const days = daysOf(period)
  const { billing_account_id: account } = project
  const zone = organization.time_zone
  const end = beginOf(nextDay(days.to), zone)
  const span: Span = {
    account,
    // Where the one before ended: the organization may have another time zone since.
    begin: beginOf(days.from, before?.time_zone ?? zone),
    end,
    after: before?.last_position ?? null,
    last: await lastPosition(db, account, end),
  }
  const own = { ...span, project_id: project.id }
  const destinations = await chargesBy(db, own, 'reservation.rate_label')
  const by_trunk = await chargesBy(db, own, 'call.trunk_id')
  const names = await trunkNames(
    db,
    by_trunk.flatMap(({ id }) => id ?? []),
  )
  const payer = await db.selectFrom('billing_account').select('prepaid').where('id', '=', account).executeTakeFirst()
  const booked = await linesOf(db, span)
    .where('ledger.kind', 'in', ['top_up', 'adjustment', 'number'])
    .select(['ledger.at', 'ledger.kind', 'ledger.amount_minor', 'ledger.note', 'ledger.project_id'])
    .orderBy('ledger.position')
    .execute()
  const numbers = booked.filter(({ kind, project_id }) => kind === 'number' && project_id === project.id)
  const payments = booked.filter(({ kind }) => kind !== 'number')
  const all = await totalOf(db, span)
  const charged = [...destinations.map(({ charge_minor }) => charge_minor), ...numbers.map(row => -row.amount_minor)]
  const paid = payments.reduce((sum, { amount_minor }) => sum + amount_minor, 0)
  return statementOf({
    kind: payer && payer.prepaid !== 1 ? 'invoice' : 'statement',
    period,
    time_zone: zone,
    currency: project.currency,
    organization_name: organization.name,
    project_id: project.id,
    project_name: project.name,
    billing_account_id: account,
    destinations: destinations.map(row => ({ ...row, label: row.id ?? 'Without a rate' })),
    trunks: by_trunk.map(row => ({
      ...row,
      label: row.id === null ? 'Not through a trunk' : (names.get(row.id) ?? row.id),
    })),
    numbers: numbers.map(numberLine),
    payments: payments.map(paymentLine),
    others_minor: paid - charged.reduce((sum, minor) => sum + minor, 0) - all,
    opening_balance_minor: before ? before.closing_balance_minor : await balanceBefore(db, span),
    last_position: Math.max(span.last, before?.last_position ?? 0),
  })
}

interface Line {
  readonly at: string
  readonly kind: string
  readonly amount_minor: number
  readonly note: string | null
}

const numberLine = ({ note, amount_minor }: Line): Statement['numbers'][number] => ({
  id: null,
  label: note ?? '',
  calls: 0,
  billed_seconds: 0,
  charge_minor: -amount_minor,
})

const paymentLine = ({ at, kind, amount_minor, note }: Line): Statement['payments'][number] => ({
  at,
  kind: kind === 'top_up' ? 'top_up' : 'adjustment',
  amount_minor,
  note,
})

/** The ledger lines of a statement. */
interface Span {
  readonly account: string
  readonly begin: string
  readonly end: string
  /** The last position of the statement before; null without one. */
  readonly after: number | null
  /** The last position when the reading began: later lines are in no sum of it. */
  readonly last: number
}

function linesOf(db: Db | Trx, { account, begin, end, after, last }: Span) {
  const lines = db
    .selectFrom('ledger')
    .where('ledger.billing_account_id', '=', account)
    .where('ledger.at', '<', end)
    .where('ledger.position', '<=', last)
  return lines.where(eb =>
    after === null
      ? eb('ledger.at', '>=', begin)
      : eb.or([eb('ledger.at', '>=', begin), eb('ledger.position', '>', after)]),
  )
}

/** Finds the last line of an account before a moment, whatever it is about; 0 without one. */
async function lastPosition(db: Db | Trx, account: string, end: string): Promise<number> {
  const { last } = await db
    .selectFrom('ledger')
    .select(eb => eb.fn.max('position').as('last'))
    .where('billing_account_id', '=', account)
    .where('at', '<', end)
    .executeTakeFirstOrThrow()
  return Number(last ?? 0)
}

/** Sums the lines of a statement. */
async function totalOf(db: Db | Trx, span: Span): Promise<number> {
  const { all } = await linesOf(db, span)
    .select(eb => eb.fn.sum<number>('ledger.amount_minor').as('all'))
    .executeTakeFirstOrThrow()
  return Number(all ?? 0)
}

type ChargeGroup = Omit<StatementLine, 'label'>

/** Sums a project's charges for calls in the ledger, dearest first. */
async function chargesBy(
  db: Db | Trx,
  span: Span & { readonly project_id: string },
  key: 'reservation.rate_label' | 'call.trunk_id',
): Promise<ChargeGroup[]> {
  const rows = await linesOf(db, span)
    .where('ledger.kind', '=', 'charge')
    .where('ledger.project_id', '=', span.project_id)
    .leftJoin('reservation', 'reservation.call_sid', 'ledger.call_sid')
    .leftJoin('call', 'call.sid', 'ledger.call_sid')
    .select(eb => [
      eb.ref(key).as('id'),
      eb.fn.countAll<number>().as('calls'),
      eb.fn.sum<number>('reservation.billed_seconds').as('billed'),
      eb.fn.sum<number>('ledger.amount_minor').as('amount'),
    ])
    .groupBy(key)
    .orderBy('amount')
    .orderBy('id')
    .execute()
  return rows.map(({ id, calls, billed, amount }) => ({
    id,
    calls: Number(calls),
    billed_seconds: Number(billed ?? 0),
    charge_minor: -Number(amount),
  }))
}

/** Exceeds any time zone's offset from UTC, which is at most 14 hours. */
const DAY_MS = 86_400_000
const nextDay = (day: string): string => new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10)

/** Returns the account's balance before a statement begins; null when nothing was booked before it. */
async function balanceBefore(db: Db | Trx, { account, begin, last }: Span): Promise<number | null> {
  const row = await db
    .selectFrom('ledger')
    .select(eb => [eb.fn.countAll<number>().as('lines'), eb.fn.sum<number>('amount_minor').as('sum')])
    .where('billing_account_id', '=', account)
    .where('at', '<', begin)
    .where('position', '<=', last)
    .executeTakeFirstOrThrow()
  return Number(row.lines) === 0 ? null : Number(row.sum)
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
