import { availableMinor } from '../../core/domain/billing/available.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { adjustBalance, findBillingAccount, listLedger } from '../../core/state/money/rates.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { pageBefore, pageQuery } from '../http/paging.ts'
import { invalid } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Instant,
  Int64,
  input,
  line,
  Money,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { AuditReason } from './audit-reason.ts'
import { projectChange } from './projects.ts'
import { route } from './route.ts'

/** The most that one booking moves: far from where sums of minor units would lose digits. */
const MOST_MINOR = 1_000_000_000_000
const MAX_PAGE = 200

const Balance = resource('OperatorBalance', {
  project_id: Type.String(),
  currency: Currency,
  payment: oneOf('prepaid', 'postpaid'),
  balance_minor: Int64,
  held_minor: Money,
  credit_limit_minor: Money,
  available_minor: nullable(Int64, { description: 'What calls may still use; null for a project that pays later.' }),
})

async function presentBalance(db: Db | Trx, project: ProjectRow): Promise<Static<typeof Balance>> {
  const account = await findBillingAccount(db, project.billing_account_id)
  if (!account) throw new Error(`project ${project.id} has no account`)
  const { balance_minor, held_minor, credit_minor } = account
  return {
    project_id: project.id,
    currency: account.currency as Static<typeof Currency>,
    payment: account.prepaid === 1 ? 'prepaid' : 'postpaid',
    balance_minor,
    held_minor,
    credit_limit_minor: credit_minor,
    available_minor: availableMinor(account),
  }
}

const LedgerLine = resource('OperatorLedgerLine', {
  position: Count64,
  at: Instant,
  kind: oneOf('charge', 'number', 'top_up', 'adjustment'),
  amount_minor: Int64,
  balance_after_minor: Int64,
  call_sid: nullable(Type.String()),
  reason: nullable(Type.String()),
  reference: nullable(Type.String()),
})

const Reference = line(120)

/** Puts money on the account of a project or takes it off. A line of the ledger is never changed, only corrected. */
const booking = (of: {
  readonly path: 'top-ups' | 'corrections'
  readonly kind: 'top_up' | 'adjustment'
  readonly summary: string
  readonly request: string
  readonly amount: ReturnType<typeof Type.Integer>
  readonly verb: string
}) =>
  route({
    method: 'post',
    path: `/projects/{project_id}/${of.path}`,
    summary: of.summary,
    scope: 'operator:money',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'seats', action: of.kind === 'top_up' ? 'balance.topped_up' : 'balance.corrected' },
    body: input(of.request, { amount_minor: of.amount, reason: AuditReason, reference: optional(Reference) }),
    replies: { 201: Balance },
    async run({ db, customer, body, now }) {
      const { amount_minor, reason: note, reference = null } = body
      if (amount_minor === 0) return invalid('/amount_minor', 'must not be 0')
      const before = await presentBalance(db, customer)
      const { billing_account_id: id } = customer
      await adjustBalance(db, { id, kind: of.kind, amount_minor, note, reference, now })
      const after = await presentBalance(db, customer)
      const shown = { before: { balance_minor: before.balance_minor }, after: { balance_minor: after.balance_minor } }
      const detail = reference === null ? note : `${note} (${reference})`
      const change = projectChange(`${of.verb} ${customer.name}`, customer, customer, { ...shown, detail })
      return { status: 201, body: after, change }
    },
  })

export const money = [
  route({
    method: 'get',
    path: '/projects/{project_id}/balance',
    summary: 'Read the balance of a project',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: Balance },
    async run({ db, customer }) {
      return { status: 200, body: await presentBalance(db, customer) }
    },
  }),

  route({
    method: 'get',
    path: '/projects/{project_id}/ledger',
    summary: 'List the entries of the account of a project, newest first',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(LedgerLine) },
    run: ({ db, customer, query }) =>
      pageBefore(query, {
        read: window => listLedger(db, customer.billing_account_id, window),
        present: ({ position, at, kind, amount_minor, balance_after_minor, ...row }) => ({
          position,
          at,
          kind,
          amount_minor,
          balance_after_minor,
          call_sid: row.call_sid,
          reason: row.note,
          reference: row.reference,
        }),
      }),
  }),

  booking({
    path: 'top-ups',
    kind: 'top_up',
    summary: 'Credit the account of a project',
    request: 'TopUpRequest',
    amount: Type.Integer({ minimum: 1, maximum: MOST_MINOR }),
    verb: 'Topped up',
  }),
  booking({
    path: 'corrections',
    kind: 'adjustment',
    summary: 'Correct the balance of a project by an amount, which may be negative',
    request: 'CorrectionRequest',
    amount: Type.Integer({ minimum: -MOST_MINOR, maximum: MOST_MINOR }),
    verb: 'Corrected the balance of',
  }),
]
