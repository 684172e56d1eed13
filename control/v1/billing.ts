import { Readable } from 'node:stream'
import { availableMinor } from '../../core/domain/billing/available.ts'
import {
  dueMinor,
  isPeriod,
  periodBefore,
  periodsBefore,
  readStored,
  type Statement,
  statementCsv,
} from '../../core/domain/billing/statement.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { dayOf } from '../../core/domain/rating/index.ts'
import type { Db } from '../../core/state/index.ts'
import {
  findBillingDocument,
  GROUPS,
  listBillingDocuments,
  readBill,
  trunkNames,
  type UsageGroup,
  type UsageRow,
  usageBy,
} from '../../core/state/money/billing.ts'
import { findBillingAccount } from '../../core/state/money/rates.ts'
import { findOrganization, type ProjectRow } from '../../core/state/people/organizations.ts'
import { statementPdf } from '../billing/statement-pdf.ts'
import { invalid, notFound } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Day,
  Flag,
  Instant,
  Int64,
  list,
  listOf,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const Text = Type.String()

const Balance = resource('Balance', {
  as_of: Instant,
  available_minor: nullable(Int64, { description: 'What calls may still hold; null when nothing limits it.' }),
  balance_minor: Int64,
  billing_account_id: Text,
  credit_minor: Count64,
  currency: Currency,
  held_minor: Count64,
  prepaid: Flag,
})

const usageFigures = {
  answered_calls: Count64,
  billed_seconds: Count64,
  calls: Count64,
  pending_spend_minor: Int64,
  settled_spend_minor: Int64,
}

const UsageLine = resource('UsageLine', {
  ...usageFigures,
  day: nullable(Day),
  destination: nullable(Text),
  trunk_id: nullable(Text),
  trunk_name: nullable(Text),
})

const Usage = resource('Usage', {
  as_of: Instant,
  currency: Currency,
  data: list(UsageLine),
  from: Day,
  group_by: oneOf(...GROUPS),
  to: Day,
  total: resource('UsageTotal', usageFigures),
})

const documentFields = {
  charges_minor: Int64,
  currency: Currency,
  from: Day,
  id: Text,
  issued_at: nullable(Instant),
  kind: oneOf('statement', 'invoice'),
  csv_href: Text,
  pdf_href: Text,
  period: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
  status: oneOf('open', 'issued'),
  to: Day,
}
const BillingDocument = resource('BillingDocument', documentFields)

const Line = resource('StatementLine', {
  billed_seconds: Count64,
  calls: Count64,
  charge_minor: Int64,
  id: nullable(Text),
  label: Text,
})

const BillingDocumentDetail = resource('BillingDocumentDetail', {
  ...documentFields,
  billed_seconds: Count64,
  billing_account_id: Text,
  calls: Count64,
  closing_balance_minor: nullable(Int64),
  destinations: list(Line),
  /** What is to be paid; 0 while the balance is not negative. */
  due_minor: Count64,
  numbers: list(Line),
  opening_balance_minor: nullable(Int64),
  organization_name: Text,
  /** What other projects that share the account were charged. */
  others_minor: Int64,
  payments: list(
    resource('StatementPayment', {
      amount_minor: Int64,
      at: Instant,
      kind: oneOf('top_up', 'adjustment'),
      note: nullable(Text),
    }),
  ),
  payments_minor: Int64,
  project_id: Text,
  project_name: Text,
  trunks: list(Line),
})

const MAX_DAYS = 366
const DEFAULT_DAYS = 30
const MAX_GROUPS = 5000
const DAY_MS = 86_400_000

const PREFIX = 'stm_'
const documentId = (period: string): string => `${PREFIX}${period}`

const presentDocument = (statement: Statement, issued_at: string | null): Static<typeof BillingDocument> => ({
  charges_minor: statement.charges_minor,
  currency: CURRENCY,
  from: statement.from,
  id: documentId(statement.period),
  issued_at,
  kind: statement.kind,
  csv_href: `/v1/billing/documents/${documentId(statement.period)}.csv`,
  pdf_href: `/v1/billing/documents/${documentId(statement.period)}.pdf`,
  period: statement.period,
  status: issued_at === null ? 'open' : 'issued',
  to: statement.to,
})

const presentDetail = (statement: Statement, issued_at: string | null): Static<typeof BillingDocumentDetail> => {
  const {
    currency: _currency,
    last_position: _,
    time_zone: __,
    destinations,
    trunks,
    numbers,
    payments,
    ...rest
  } = statement
  return {
    ...rest,
    ...presentDocument(statement, issued_at),
    destinations: [...destinations],
    due_minor: dueMinor(statement),
    numbers: [...numbers],
    trunks: [...trunks],
    payments: [...payments],
  }
}

async function zoneOf(db: Db, organization_id: string): Promise<string> {
  return (await findOrganization(db, organization_id))?.time_zone ?? 'UTC'
}

interface Found {
  readonly statement: Statement
  readonly issued_at: string | null
}

/** Returns the months of a project, the running one last. The last ones may have no issued statement yet. */
function monthsOf(project: ProjectRow, time_zone: string, now: string): string[] {
  const today = dayOf(Date.parse(now), time_zone)
  return [...periodsBefore(dayOf(Date.parse(project.created_at), time_zone), today), today.slice(0, 7)]
}

/** Returns a statement as it was issued, or the preliminary one of a month whose statement is not issued yet. */
async function findStatement(db: Db, project: ProjectRow, id: string, now: string): Promise<Found | undefined> {
  const period = id.startsWith(PREFIX) ? id.slice(PREFIX.length) : ''
  if (!isPeriod(period)) return undefined
  const row = await findBillingDocument(db, project.id, period)
  if (row) return { statement: readStored(row.body), issued_at: row.issued_at }
  const organization = await findOrganization(db, project.organization_id)
  if (!organization || !monthsOf(project, organization.time_zone, now).includes(period)) return undefined
  const last = await findBillingDocument(db, project.id, periodBefore(period))
  const before = last && readStored(last.body)
  return { statement: await readBill(db, project, organization, period, before), issued_at: null }
}

const noDocument = (id: string) => notFound(`billing document ${id.slice(0, 60)}`)

async function usageLines(db: Db, group: UsageGroup, rows: readonly UsageRow[]): Promise<Static<typeof UsageLine>[]> {
  const ids = group === 'trunk' ? rows.flatMap(({ key }) => key ?? []) : []
  const names = await trunkNames(db, ids)
  return rows.map(row => ({
    ...figuresOf(row),
    day: group === 'day' ? row.key : null,
    destination: group === 'destination' ? row.key : null,
    trunk_id: group === 'trunk' ? row.key : null,
    trunk_name: group === 'trunk' && row.key !== null ? (names.get(row.key) ?? null) : null,
  }))
}

const figuresOf = (row: UsageRow) => ({
  answered_calls: row.answered_calls,
  billed_seconds: row.billed_seconds,
  calls: row.calls,
  pending_spend_minor: row.pending_minor,
  settled_spend_minor: row.settled_minor,
})

const NOTHING: UsageRow = {
  key: null,
  calls: 0,
  answered_calls: 0,
  billed_seconds: 0,
  settled_minor: 0,
  pending_minor: 0,
}

const totalOf = (rows: readonly UsageRow[]): UsageRow =>
  rows.reduce(
    (sum, row) => ({
      key: null,
      calls: sum.calls + row.calls,
      answered_calls: sum.answered_calls + row.answered_calls,
      billed_seconds: sum.billed_seconds + row.billed_seconds,
      settled_minor: sum.settled_minor + row.settled_minor,
      pending_minor: sum.pending_minor + row.pending_minor,
    }),
    NOTHING,
  )

export const billing = [
  route({
    method: 'get',
    path: '/billing/balance',
    summary: 'Read the balance of the account that pays for the project',
    scope: 'billing:read',
    replies: { 200: Balance },
    async run({ db, project, now }) {
      const account = await findBillingAccount(db, project.billing_account_id)
      const { balance_minor = 0, credit_minor = 0, held_minor = 0 } = account ?? {}
      const prepaid = account?.prepaid === 1
      const body: Static<typeof Balance> = {
        as_of: now,
        available_minor: account ? availableMinor(account) : null,
        balance_minor,
        billing_account_id: project.billing_account_id,
        credit_minor,
        currency: CURRENCY,
        held_minor,
        prepaid,
      }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/billing/usage',
    summary: 'Sum up what calls cost, by day, trunk or destination',
    description:
      'Days are of the time zone of the organization, both ends included, at most 366; without them the last 30.',
    scope: 'billing:read',
    restricted_keys: true,
    query: Type.Object(
      {
        from: optional(Day),
        to: optional(Day),
        group_by: optional(oneOf(...GROUPS)),
        trunk_id: optional(Type.String({ minLength: 1, maxLength: 128 })),
      },
      { additionalProperties: false },
    ),
    replies: { 200: Usage },
    async run({ db, project, caller, query, now }) {
      const to = query.to ?? dayOf(Date.parse(now), await zoneOf(db, project.organization_id))
      const from = query.from ?? new Date(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS).toISOString().slice(0, 10)
      if (from > to) return invalid('from', 'is after to')
      if (Date.parse(to) - Date.parse(from) >= MAX_DAYS * DAY_MS)
        return invalid('from', `is ${MAX_DAYS} days before to`)
      const group = query.group_by ?? 'day'
      const filter = {
        from,
        to,
        ...(query.trunk_id === undefined ? {} : { trunk_id: query.trunk_id }),
        ...(caller.subaccount_id === null ? {} : { subaccount_id: caller.subaccount_id }),
      }
      const rows = await usageBy(db, project.id, group, filter, MAX_GROUPS)
      const body: Static<typeof Usage> = {
        as_of: now,
        currency: CURRENCY,
        data: await usageLines(db, group, rows),
        from,
        group_by: group,
        to,
        total: figuresOf(totalOf(rows)),
      }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/billing/documents',
    summary:
      'List the monthly statements, newest first; the running month is open, and an ended one until it is issued',
    scope: 'billing:read',
    replies: { 200: listOf(BillingDocument) },
    async run({ db, project, now }) {
      const issued = new Map((await listBillingDocuments(db, project.id)).map(row => [row.period, row]))
      const months = monthsOf(project, await zoneOf(db, project.organization_id), now)
      const data: Static<typeof BillingDocument>[] = []
      for (const period of [...new Set([...months, ...issued.keys()])].sort().reverse()) {
        const row = issued.get(period)
        const found = row
          ? { statement: readStored(row.body), issued_at: row.issued_at }
          : await findStatement(db, project, documentId(period), now)
        if (found) data.push(presentDocument(found.statement, found.issued_at))
      }
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'get',
    path: '/billing/documents/{document_id}',
    summary: 'Read a monthly statement with its lines',
    scope: 'billing:read',
    replies: { 200: BillingDocumentDetail },
    async run({ db, project, params, now }) {
      const found = await findStatement(db, project, params.document_id, now)
      if (!found) return noDocument(params.document_id)
      return { status: 200, body: presentDetail(found.statement, found.issued_at) }
    },
  }),

  route({
    method: 'get',
    path: '/billing/documents/{document_id}.pdf',
    summary: 'Download a monthly statement as a PDF file',
    scope: 'billing:read',
    produces: 'application/pdf',
    replies: { 200: null },
    async run({ db, project, params, now }) {
      const found = await findStatement(db, project, params.document_id, now)
      if (!found) return noDocument(params.document_id)
      const id = documentId(found.statement.period)
      const bytes = await statementPdf(found.statement, { id, issued_at: found.issued_at })
      const headers = {
        'Content-Type': 'application/pdf',
        'Content-Length': String(bytes.length),
        'Content-Disposition': `attachment; filename="${id}.pdf"`,
      }
      return { status: 200, headers, stream: Readable.from([bytes]) }
    },
  }),

  route({
    method: 'get',
    path: '/billing/documents/{document_id}.csv',
    summary: 'Download a monthly statement as a CSV file; its amounts add up from the opening to the closing balance',
    scope: 'billing:read',
    produces: 'text/csv',
    replies: { 200: null },
    async run({ db, project, params, now }) {
      const found = await findStatement(db, project, params.document_id, now)
      if (!found) return noDocument(params.document_id)
      const bytes = Buffer.from(statementCsv(found.statement))
      const headers = {
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Length': String(bytes.length),
        'Content-Disposition': `attachment; filename="${documentId(found.statement.period)}.csv"`,
      }
      return { status: 200, headers, stream: Readable.from([bytes]) }
    },
  }),
]
