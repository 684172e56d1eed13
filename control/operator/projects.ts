import { type OpenPoint, openPoints } from '../../core/domain/customers/checklist.ts'
import { HIGH_RISK_AS_OF, HIGH_RISK_NAMES } from '../../core/domain/fraud/high-risk.ts'
import { type Ceilings, findCeilings, putCeilings } from '../../core/state/configuration/settings.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { findBillingAccount, putBillingAccount } from '../../core/state/money/rates.ts'
import { insertProject, listAllProjects, liveFacts, saveProject } from '../../core/state/people/customers.ts'
import { findOrganization, type ProjectRow } from '../../core/state/people/organizations.ts'
import { withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { pageAfter, pageQuery } from '../http/paging.ts'
import { type Change, notFound, refuse } from '../http/reply.ts'
import {
  Currency,
  described,
  Flag,
  Instant,
  Int64,
  input,
  list,
  Money,
  Name,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { AuditReason } from './audit-reason.ts'
import { route } from './route.ts'

const MAX_PAGE = 200

const Ceiling = nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
const CEILINGS = {
  concurrency: Ceiling,
  cps: Ceiling,
  daily_spend_cap_minor: Ceiling,
  velocity_cap_minor: Ceiling,
  max_call_duration_seconds: Ceiling,
  max_destination_rate_minor: Ceiling,
}
const RiskName = oneOf(...HIGH_RISK_NAMES)
const ProjectCeilings = resource('OperatorProjectCeilings', CEILINGS)

export const Project = resource('OperatorProject', {
  id: Type.String(),
  organization_id: Type.String(),
  name: Type.String(),
  status: oneOf('active', 'disabled'),
  sandbox: Flag,
  currency: Currency,
  payment: oneOf('prepaid', 'postpaid'),
  credit_limit_minor: Money,
  ceilings: ProjectCeilings,
  risk: resource('OperatorProjectRisk', {
    open: described(list(RiskName), 'High-risk destinations that the project may call, by name.'),
    closed: described(list(RiskName), `The others of the list of ${HIGH_RISK_AS_OF}.`),
  }),
  revision: Int64,
  created_at: Instant,
})

async function ceilingsOf(db: Db | Trx, project_id: string): Promise<Static<typeof ProjectCeilings>> {
  const row = await findCeilings(db, project_id)
  return {
    concurrency: row?.concurrency ?? null,
    cps: row?.cps ?? null,
    daily_spend_cap_minor: row?.daily_spend_cap_minor ?? null,
    velocity_cap_minor: row?.velocity_cap_minor ?? null,
    max_call_duration_seconds: row?.max_call_duration_seconds ?? null,
    max_destination_rate_minor: row?.max_destination_rate_minor ?? null,
  }
}

export async function presentProject(db: Db | Trx, row: ProjectRow): Promise<Static<typeof Project>> {
  const account = await findBillingAccount(db, row.billing_account_id)
  return {
    ...presentPlainly(row),
    currency: row.currency as Static<typeof Currency>,
    payment: account?.prepaid === 1 ? 'prepaid' : 'postpaid',
    credit_limit_minor: account?.credit_minor ?? 0,
    ceilings: await ceilingsOf(db, row.id),
    risk: { open: openRisks(row), closed: HIGH_RISK_NAMES.filter(name => !openRisks(row).includes(name)) },
  }
}

/** The high-risk destinations that are open, in the order of the list. */
function openRisks({ open_risks }: ProjectRow) {
  const open: unknown = JSON.parse(open_risks)
  return HIGH_RISK_NAMES.filter(name => Array.isArray(open) && open.includes(name))
}

const presentPlainly = (row: ProjectRow) => ({
  id: row.id,
  organization_id: row.organization_id,
  name: row.name,
  status: row.status,
  sandbox: row.sandbox === 1,
  revision: row.revision,
  created_at: row.created_at,
})

/** What changed of a project, for both trails. `before` and `after` may add what stands in other rows. */
export const projectChange = (
  summary: string,
  before: ProjectRow | null,
  after: ProjectRow,
  shown: { readonly before?: object; readonly after?: object; readonly detail?: string } = {},
): Change => ({
  resource: { type: 'project', id: after.id, name: after.name, href: `/operator/v1/projects/${after.id}` },
  summary,
  detail: shown.detail ?? null,
  before: before && { ...presentPlainly(before), ...shown.before },
  after: { ...presentPlainly(after), ...shown.after },
  from_revision: before?.revision ?? null,
  to_revision: after.revision,
  customer: { organization_id: after.organization_id, project_id: after.id },
})

const POINTS: Readonly<Record<OpenPoint, string>> = {
  carrier: 'no enabled carrier has a target and a route',
  price_book: 'no price book is in force',
  number: 'it holds no number',
  balance: 'its balance and credit are used up',
}

/** Enables or disables a project for new calls and changes. */
const switched = (action: 'enable' | 'disable') =>
  route({
    method: 'post',
    path: `/projects/{project_id}/${action}`,
    summary:
      action === 'enable' ? 'Enable a disabled project' : 'Disable a project: it takes no new calls and no changes',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'customer',
    applies: true,
    audit: { kind: 'seats', action: `project.${action}d` },
    body: input(action === 'enable' ? 'EnableProjectRequest' : 'DisableProjectRequest', { reason: AuditReason }),
    replies: { 200: Project },
    refusals: ['state_conflict', 'organization_suspended'],
    async run({ db, customer, body }) {
      const status = action === 'enable' ? 'active' : 'disabled'
      if (customer.status === status && customer.suspended === 0)
        return refuse('state_conflict', { name: customer.name, value: status })
      const organization = await findOrganization(db, customer.organization_id)
      if (organization?.status === 'suspended') return refuse('organization_suspended', { name: organization.name })
      const saved = await saveProject(db, customer, { status })
      const verb = action === 'enable' ? 'Enabled' : 'Disabled'
      const change = projectChange(`${verb} ${saved.name}`, customer, saved, { detail: body.reason })
      return { status: 200, revision: saved.revision, body: await presentProject(db, saved), change }
    },
  })

/** How a project pays, and its credit, are money: more than the scope of the route. */
const termsRefused = (
  caller: Caller,
  terms: { readonly payment?: unknown; readonly credit_limit_minor?: unknown; readonly risk?: unknown },
): ReturnType<typeof withoutScope> => {
  if (terms.risk !== undefined && withoutScope(caller, 'operator:fraud')) return withoutScope(caller, 'operator:fraud')
  if (terms.payment === undefined && terms.credit_limit_minor === undefined) return null
  return withoutScope(caller, 'operator:money')
}

export const projects = [
  route({
    method: 'get',
    path: '/projects',
    summary: 'List the projects of all organizations, or of one',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(
      { ...pageQuery(MAX_PAGE), organization_id: optional(Type.String({ maxLength: 64 })) },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(Project) },
    run: ({ db, query: { cursor, limit, ...filter } }) =>
      pageAfter(
        { cursor, limit },
        {
          read: window => listAllProjects(db, { ...filter, ...window }),
          key: row => row.id,
          present: row => presentProject(db, row),
        },
      ),
  }),

  route({
    method: 'post',
    path: '/projects',
    summary: 'Create a project of an organization, in the sandbox; terms of payment need `operator:money`',
    scope: 'operator:customers',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'seats', action: 'project.created' },
    body: input('CreateProjectRequest', {
      organization_id: Type.String({ maxLength: 64 }),
      name: Name,
      payment: optional(oneOf('prepaid', 'postpaid')),
      credit_limit_minor: optional(Money),
    }),
    replies: { 201: Project },
    refusals: ['organization_suspended', 'scope_required', 'role_forbidden'],
    async run({ db, body, caller, now, services }) {
      const refusal = termsRefused(caller, body)
      if (refusal) return refusal
      const organization = await findOrganization(db, body.organization_id)
      if (!organization) return notFound(`organization ${body.organization_id}`)
      if (organization.status === 'suspended') return refuse('organization_suspended', { name: organization.name })
      const { name, payment = 'prepaid', credit_limit_minor: credit_minor = 0 } = body
      const terms = { name, sandbox: true, prepaid: payment === 'prepaid', credit_minor }
      const { master_key } = services.settings
      const project = await insertProject(db, { organization_id: organization.id, ...terms }, { master_key, now })
      const shown = await presentProject(db, project)
      const change = projectChange(`Created ${name}`, null, project, { after: shown })
      return { status: 201, revision: project.revision, body: shown, change }
    },
  }),

  route({
    method: 'get',
    path: '/projects/{project_id}',
    summary: 'Read a project',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: Project },
    async run({ db, customer }) {
      return { status: 200, revision: customer.revision, body: await presentProject(db, customer) }
    },
  }),

  route({
    method: 'patch',
    path: '/projects/{project_id}',
    summary: 'Change a project; how it pays and its credit limit need `operator:money`, its risk `operator:fraud`',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'customer',
    applies: true,
    audit: { kind: 'seats', action: 'project.updated' },
    body: input('UpdateProjectRequest', {
      name: optional(Name),
      payment: optional(oneOf('prepaid', 'postpaid')),
      credit_limit_minor: optional(Money),
      risk: optional(
        input('ProjectRiskRequest', {
          open: described(
            list(RiskName, { maxItems: HIGH_RISK_NAMES.length, uniqueItems: true }),
            'The high-risk destinations that the project may call; replaces the whole list.',
          ),
        }),
      ),
    }),
    replies: { 200: Project },
    refusals: ['scope_required', 'role_forbidden'],
    async run({ db, customer, caller, body }) {
      const refusal = termsRefused(caller, body)
      if (refusal) return refusal
      const before = await presentProject(db, customer)
      const { name = customer.name, payment = before.payment } = body
      const credit_minor = body.credit_limit_minor ?? before.credit_limit_minor
      await putBillingAccount(db, {
        id: customer.billing_account_id,
        name,
        currency: customer.currency,
        prepaid: payment === 'prepaid' ? 1 : 0,
        credit_minor,
      })
      const open_risks = JSON.stringify(body.risk?.open ?? openRisks(customer))
      const saved = await saveProject(db, customer, { name, open_risks })
      const after = await presentProject(db, saved)
      const change = projectChange(`Changed ${saved.name}`, customer, saved, { before, after })
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  route({
    method: 'put',
    path: '/projects/{project_id}/ceilings',
    summary: 'Set the ceilings of a project; null is no ceiling, 0 admits nothing',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'customer',
    applies: true,
    audit: { kind: 'seats', action: 'project.ceilings_changed' },
    body: input('ProjectCeilingsRequest', CEILINGS),
    replies: { 200: Project },
    async run({ db, customer, body, now }) {
      const before = { ceilings: await ceilingsOf(db, customer.id) }
      await putCeilings(db, customer.id, body satisfies Ceilings, now)
      const saved = await saveProject(db, customer, {})
      const after = await presentProject(db, saved)
      const shown = { before, after: { ceilings: after.ceilings } }
      const change = projectChange(`Set the ceilings of ${saved.name}`, customer, saved, shown)
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  switched('disable'),
  switched('enable'),

  route({
    method: 'get',
    path: '/projects/{project_id}/checklist',
    summary: 'Read what a project still needs before it can leave the sandbox',
    scope: 'operator:read',
    context: 'organization',
    replies: {
      200: resource('GoLiveChecklist', {
        open: list(oneOf('carrier', 'price_book', 'number', 'balance')),
        carriers: Int64,
        price_books: Int64,
        numbers: Int64,
        available_minor: nullable(Int64),
      }),
    },
    async run({ db, customer, now }) {
      const facts = await liveFacts(db, customer, now)
      return { status: 200, body: { open: openPoints(facts), ...facts } }
    },
  }),

  route({
    method: 'post',
    path: '/projects/{project_id}/go-live',
    summary: 'Take a project out of the sandbox: its calls reach carriers and cost money from now on',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'customer',
    applies: true,
    audit: { kind: 'seats', action: 'project.went_live' },
    body: input('GoLiveRequest', { reason: AuditReason }),
    replies: { 200: Project },
    refusals: ['state_conflict', 'checklist_open'],
    async run({ db, customer, body, now }) {
      if (customer.sandbox === 0) return refuse('state_conflict', { name: customer.name, value: 'live' })
      const open = openPoints(await liveFacts(db, customer, now))
      if (open.length > 0) {
        const errors = open.map(point => ({ pointer: `/checklist/${point}`, message: POINTS[point] }))
        const value = open.map(point => POINTS[point]).join('; ')
        return refuse('checklist_open', { name: customer.name, value }, { errors })
      }
      const saved = await saveProject(db, customer, { sandbox: 0 })
      const change = projectChange(`Took ${saved.name} out of the sandbox`, customer, saved, { detail: body.reason })
      return { status: 200, revision: saved.revision, body: await presentProject(db, saved), change }
    },
  }),
]
