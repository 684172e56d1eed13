import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { dayOf } from '../../core/domain/rating/index.ts'
import { busiestDay } from '../../core/state/calls/counters.ts'
import type { Db } from '../../core/state/index.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import {
  insertSubaccount,
  listSubaccounts,
  newSubaccountId,
  peakOf,
  type SubaccountRow,
  saveSubaccount,
} from '../../core/state/people/subaccounts.ts'
import { type Change, refuse } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Instant,
  Int32,
  input,
  list,
  listOf,
  Money,
  Name,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'
import { presentUsage, USAGE_WINDOW_MS, usageFields } from './usage.ts'

const ceilings = {
  daily_spend_cap_minor: nullable(Money),
  max_call_duration_seconds: nullable(Int32),
  max_concurrent: nullable(Int32),
  max_cps: nullable(Int32),
  max_destination_rate_minor: nullable(Money),
}

const Subaccount = resource('Subaccount', {
  created_at: Instant,
  currency: Currency,
  ...ceilings,
  id: Type.String(),
  live_calls: Int32,
  name: Type.String(),
  policy_ceilings: list(
    resource('SubaccountPolicyCeilings', {
      acknowledged_at: nullable(Instant),
      currency: Currency,
      ...ceilings,
      policy_id: Type.String(),
      policy_name: Type.String(),
      policy_revision: Count64,
      runtime_revision: Count64,
      trunk_id: Type.String(),
      trunk_name: Type.String(),
    }),
  ),
  revision: Count64,
  status: oneOf('enabled', 'suspended'),
  updated_at: Instant,
  usage_30d: resource('SubaccountUsage', {
    ...usageFields,
    busiest_day: nullable(
      resource('BusiestDay', { date: Type.String({ format: 'date' }), settled_spend_minor: Money }),
    ),
    peak_concurrent: Int32,
    peak_concurrent_at: nullable(Instant),
  }),
})
type Shown = Static<typeof Subaccount>

const configuration = {
  daily_spend_cap_minor: optional(ceilings.daily_spend_cap_minor),
  max_call_duration_seconds: optional(ceilings.max_call_duration_seconds),
  max_concurrent: optional(ceilings.max_concurrent),
  max_cps: optional(ceilings.max_cps),
  max_destination_rate_minor: optional(ceilings.max_destination_rate_minor),
}

async function present(db: Db, project: Pick<ProjectRow, 'organization_id'>, row: SubaccountRow, now_ms: number) {
  const zone = (await findOrganization(db, project.organization_id))?.time_zone ?? 'UTC'
  const { shown: usage } = await presentUsage(db, 'subaccount', row.id, now_ms)
  const shown: Shown = {
    created_at: row.created_at,
    currency: CURRENCY,
    daily_spend_cap_minor: row.daily_spend_cap_minor,
    id: row.id,
    live_calls: usage.live_calls,
    max_call_duration_seconds: row.max_call_duration_seconds,
    max_concurrent: row.max_concurrent,
    max_cps: row.max_cps,
    max_destination_rate_minor: row.max_destination_rate_minor,
    name: row.name,
    policy_ceilings: await policyCeilings(db, row.id),
    revision: row.revision,
    status: row.status,
    updated_at: row.updated_at,
    usage_30d: {
      ...usage,
      busiest_day: await busiestDay(db, 'subaccount', row.id, dayOf(now_ms - USAGE_WINDOW_MS, zone)),
      ...(await peakOf(db, 'subaccount', row.id, usage.window_from)),
    },
  }
  return shown
}

/** Returns the ceilings of the policies that are attached to the subaccount's trunks. */
async function policyCeilings(db: Db, subaccount_id: string): Promise<Shown['policy_ceilings']> {
  const rows = await db
    .selectFrom('trunk')
    .innerJoin('policy_attachment', join =>
      join.onRef('policy_attachment.service_id', '=', 'trunk.id').on('policy_attachment.service_type', '=', 'trunk'),
    )
    .innerJoin('outbound_policy as policy', 'policy.id', 'policy_attachment.policy_id')
    .selectAll('policy')
    .select(['trunk.id as trunk_id', 'trunk.name as trunk_name'])
    .select(['policy_attachment.applied_at', 'policy_attachment.applied_revision'])
    .where('trunk.subaccount_id', '=', subaccount_id)
    .where('trunk.status', '!=', 'released')
    .orderBy('trunk.name')
    .execute()
  return rows.map(row => ({
    acknowledged_at: row.applied_at,
    currency: CURRENCY,
    daily_spend_cap_minor: row.daily_spend_limit_minor,
    max_call_duration_seconds: row.max_call_duration_seconds,
    max_concurrent: row.concurrency,
    max_cps: row.cps,
    max_destination_rate_minor: row.max_destination_rate_minor,
    policy_id: row.id,
    policy_name: row.name,
    policy_revision: row.revision,
    runtime_revision: row.applied_revision,
    trunk_id: row.trunk_id,
    trunk_name: row.trunk_name,
  }))
}

const subaccountChange = (summary: string, row: SubaccountRow, before: Shown | null, after: Shown): Change => ({
  resource: { type: 'subaccount', id: row.id, name: row.name, href: `/v1/subaccounts/${row.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: row.revision,
})

const statusRoute = (action: 'suspend' | 'resume') => {
  const status = action === 'suspend' ? 'suspended' : 'enabled'
  return route({
    method: 'post',
    path: `/subaccounts/{subaccount_id}/${action}`,
    summary:
      action === 'suspend' ? 'Stop admitting new calls of a subaccount' : 'Admit new calls of a subaccount again',
    scope: 'subaccounts:write',
    if_match: 'subaccount',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: `subaccount.${action === 'suspend' ? 'suspended' : 'resumed'}` },
    body: input('SubaccountStatusRequest', { confirm_name: Type.String({ maxLength: 240 }) }),
    replies: { 200: Subaccount },
    refusals: ['confirm_name_mismatch'],
    async run({ db, project, subaccount, body, now, services }) {
      if (body.confirm_name !== subaccount.name) return refuse('confirm_name_mismatch', { value: body.confirm_name })
      const now_ms = services.clock.now()
      const before = await present(db, project, subaccount, now_ms)
      if (subaccount.status === status)
        return { status: 200, revision: subaccount.revision, body: before, change: null }
      const saved = await saveSubaccount(db, subaccount, { status }, now)
      const after = await present(db, project, saved, now_ms)
      const summary = `${action === 'suspend' ? 'Suspended' : 'Resumed'} subaccount ${saved.name}`
      const change = subaccountChange(summary, saved, before, after)
      return { status: 200, revision: saved.revision, body: after, change }
    },
  })
}

export const subaccounts = [
  route({
    method: 'get',
    path: '/subaccounts',
    summary: 'List the subaccounts of the project',
    scope: 'subaccounts:read',
    restricted_keys: true,
    replies: { 200: listOf(Subaccount) },
    async run({ db, project, caller, services }) {
      const rows = await listSubaccounts(db, project.id)
      const seen = rows.filter(row => caller.subaccount_id === null || row.id === caller.subaccount_id)
      const data: Shown[] = []
      for (const row of seen) data.push(await present(db, project, row, services.clock.now()))
      return { status: 200, body: { data } }
    },
  }),

  route({
    method: 'post',
    path: '/subaccounts',
    summary: 'Create a subaccount with its own ceilings',
    scope: 'subaccounts:write',
    idempotent: true,
    audit: { kind: 'trunks', action: 'subaccount.created' },
    body: input('CreateSubaccountRequest', {
      name: Name,
      configuration: input('SubaccountConfiguration', { currency: Currency, ...configuration }),
    }),
    replies: { 201: Subaccount },
    example: { name: 'Lagos branch', configuration: { currency: CURRENCY, max_concurrent: 10, max_cps: 2 } },
    async run({ db, project, body, now, services }) {
      const { currency, ...given } = body.configuration
      const row: SubaccountRow = {
        id: newSubaccountId(),
        project_id: project.id,
        name: body.name,
        status: 'enabled',
        currency,
        max_concurrent: null,
        max_cps: null,
        daily_spend_cap_minor: null,
        max_call_duration_seconds: null,
        max_destination_rate_minor: null,
        ...given,
        revision: 1,
        created_at: now,
        updated_at: now,
      }
      await insertSubaccount(db, row)
      const shown = await present(db, project, row, services.clock.now())
      return {
        status: 201,
        revision: 1,
        headers: { Location: `/v1/subaccounts/${row.id}` },
        body: shown,
        change: subaccountChange(`Created subaccount ${row.name}`, row, null, shown),
      }
    },
  }),

  route({
    method: 'get',
    path: '/subaccounts/{subaccount_id}',
    summary: 'Read a subaccount with its usage of 30 days',
    scope: 'subaccounts:read',
    replies: { 200: Subaccount },
    async run({ db, project, subaccount, services }) {
      const body = await present(db, project, subaccount, services.clock.now())
      return { status: 200, revision: subaccount.revision, body }
    },
  }),

  route({
    method: 'patch',
    path: '/subaccounts/{subaccount_id}',
    summary: 'Change the name or ceilings of a subaccount; what is left out stays',
    scope: 'subaccounts:write',
    if_match: 'subaccount',
    applies: true,
    audit: { kind: 'trunks', action: 'subaccount.updated' },
    body: input('UpdateSubaccountRequest', {
      name: optional(nullable(Name)),
      configuration: optional(
        input('SubaccountConfigurationChange', { currency: optional(Currency), ...configuration }),
      ),
    }),
    replies: { 200: Subaccount },
    async run({ db, project, subaccount, body, now, services }) {
      const now_ms = services.clock.now()
      const before = await present(db, project, subaccount, now_ms)
      const changes = { ...body.configuration, ...(body.name ? { name: body.name } : {}) }
      const saved = await saveSubaccount(db, subaccount, changes, now)
      const after = await present(db, project, saved, now_ms)
      const change = subaccountChange(`Saved subaccount ${saved.name}`, saved, before, after)
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  statusRoute('suspend'),
  statusRoute('resume'),
]
