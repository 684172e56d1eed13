import { iso } from '../../core/runtime/clock.ts'
import type { Db, ProjectTable } from '../../core/state/index.ts'
import { liveCalls } from '../../core/state/leases.ts'
import { numbersOfRange, saveNumber } from '../../core/state/numbers.ts'
import { findAttachment, findPolicy, listRules } from '../../core/state/policies.ts'
import { usageOf } from '../../core/state/subaccounts.ts'
import {
  detachDelegation,
  insertSubtrunk,
  listDelegations,
  listSubtrunks,
  newSubtrunkId,
  type SubtrunkRow,
  saveSubtrunk,
} from '../../core/state/subtrunks.ts'
import type { TrunkRow } from '../../core/state/trunks.ts'
import { type Change, isRefusal, notFound, refuse, wakeJobs } from '../http/reply.ts'
import {
  Count64,
  Currency,
  E164,
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
import { Delegation, delegateTo, delegationChange, presentDelegation } from './number-blocks.ts'
import { route } from './route.ts'
import { Refusals } from './subaccounts.ts'
import { TrunkStatus } from './trunk-schemas.ts'
import { releasing } from './trunk-writes.ts'

const ceilings = {
  concurrency: nullable(Int32),
  cps: nullable(Int32),
  daily_spend_cap_minor: nullable(Money),
  velocity_cap_minor: nullable(Money),
  max_call_duration_seconds: nullable(Int32),
  max_destination_rate_minor: nullable(Money),
}

const Destinations = list(Type.String())

const SubtrunkSummary = resource('SubtrunkSummary', {
  currency: Currency,
  id: Type.String(),
  limits: resource('SubtrunkLimits', {
    concurrency: resource('CountPair', { child: Int32, parent: Int32 }),
    delegated: Int32,
    destinations: resource('DestinationPair', { child: Destinations, parent: Destinations }),
    daily_spend_cap: resource('MoneyPair', { child_minor: nullable(Money), parent_minor: nullable(Money) }),
  }),
  name: Type.String(),
  parent_trunk_id: Type.String(),
  parent_trunk_name: Type.String(),
  status: oneOf('enabled', 'disabled', 'releasing'),
})

const SubtrunkDetail = resource('SubtrunkDetail', {
  configuration: resource('SubtrunkConfiguration', ceilings),
  delegations: list(Delegation),
  id: Type.String(),
  inheritance: resource('SubtrunkInheritance', {
    organization_allowed_destinations: Destinations,
    parent_limits: resource('ParentLimits', { concurrency: Int32, cps: Int32, max_call_duration_seconds: Int32 }),
  }),
  name: Type.String(),
  organization_id: Type.String(),
  revision: Count64,
  status: TrunkStatus,
  trunk_id: Type.String(),
  usage: resource('SubtrunkUsage', {
    answered_calls: Int32,
    as_of: Instant,
    call_attempts: Int32,
    currency: Currency,
    live_calls: Int32,
    pending_spend_minor: Money,
    refusals: Refusals,
    settled_spend_minor: Money,
    window_from: Instant,
  }),
})
type Detail = Static<typeof SubtrunkDetail>

const Configuration = input('SubtrunkConfigurationInput', {
  concurrency: optional(ceilings.concurrency),
  cps: optional(ceilings.cps),
  daily_spend_cap_minor: optional(ceilings.daily_spend_cap_minor),
  velocity_cap_minor: optional(ceilings.velocity_cap_minor),
  max_call_duration_seconds: optional(ceilings.max_call_duration_seconds),
  max_destination_rate_minor: optional(ceilings.max_destination_rate_minor),
})

const WINDOW_MS = 30 * 24 * 60 * 60 * 1000

/** Destinations that the policy of a service allows, as the customer wrote them; empty when it restricts none. */
async function allowedBy(db: Db, project_id: string, type: 'trunk' | 'subtrunk', id: string): Promise<string[]> {
  const attachment = await findAttachment(db, type, id)
  const policy = attachment && (await findPolicy(db, project_id, attachment.policy_id))
  return policy ? (await listRules(db, policy.id, 'allow')).map(rule => rule.value) : []
}

async function presentSummary(db: Db, trunk: TrunkRow, row: SubtrunkRow): Promise<Static<typeof SubtrunkSummary>> {
  const delegations = await listDelegations(db, row.id)
  const attachment = await findAttachment(db, 'trunk', trunk.id)
  const policy = attachment && (await findPolicy(db, trunk.project_id, attachment.policy_id))
  return {
    currency: 'NGN',
    id: row.id,
    limits: {
      concurrency: { child: row.concurrency ?? trunk.concurrency, parent: trunk.concurrency },
      delegated: delegations.reduce((sum, { size }) => sum + size, 0),
      destinations: {
        child: await allowedBy(db, trunk.project_id, 'subtrunk', row.id),
        parent: await allowedBy(db, trunk.project_id, 'trunk', trunk.id),
      },
      daily_spend_cap: {
        child_minor: row.daily_spend_cap_minor,
        parent_minor: policy?.daily_spend_limit_minor ?? null,
      },
    },
    name: row.name,
    parent_trunk_id: trunk.id,
    parent_trunk_name: trunk.name,
    status: row.status === 'released' ? 'releasing' : row.status,
  }
}

async function presentDetail(
  db: Db,
  project: Pick<ProjectTable, 'organization_id'>,
  trunk: TrunkRow,
  row: SubtrunkRow,
  now_ms: number,
): Promise<Detail> {
  const window_from = iso(now_ms - WINDOW_MS)
  const usage = await usageOf(db, 'subtrunk', row.id, window_from)
  const { concurrency, cps, max_call_duration_seconds } = trunk
  return {
    configuration: {
      concurrency: row.concurrency,
      cps: row.cps,
      daily_spend_cap_minor: row.daily_spend_cap_minor,
      velocity_cap_minor: row.velocity_cap_minor,
      max_call_duration_seconds: row.max_call_duration_seconds,
      max_destination_rate_minor: row.max_destination_rate_minor,
    },
    delegations: (await listDelegations(db, row.id)).map(presentDelegation),
    id: row.id,
    inheritance: {
      organization_allowed_destinations: await allowedBy(db, row.project_id, 'trunk', trunk.id),
      parent_limits: { concurrency, cps, max_call_duration_seconds },
    },
    name: row.name,
    organization_id: project.organization_id,
    revision: row.revision,
    status: row.status,
    trunk_id: trunk.id,
    usage: {
      answered_calls: usage.answered_calls,
      as_of: iso(now_ms),
      call_attempts: usage.call_attempts,
      currency: 'NGN',
      live_calls: (await liveCalls(db, 'subtrunk', [row.id])).get(row.id) ?? 0,
      pending_spend_minor: usage.pending_spend_minor,
      refusals: [...usage.refusals],
      settled_spend_minor: usage.settled_spend_minor,
      window_from,
    },
  }
}

const subtrunkChange = (summary: string, row: SubtrunkRow, before: Detail | null, after: Detail | null): Change => ({
  resource: {
    type: 'subtrunk',
    id: row.id,
    name: row.name,
    href: `/v1/trunks/${row.trunk_id}/subtrunks/${row.id}`,
  },
  summary,
  before: before && withoutUsage(before),
  after: after && withoutUsage(after),
  from_revision: before?.revision ?? null,
  to_revision: row.revision,
  trunk_id: row.trunk_id,
})

const withoutUsage = ({ usage: _usage, ...rest }: Detail): object => rest

const LIST = '/trunks/{trunk_id}/subtrunks'
const ONE = '/trunks/{trunk_id}/subtrunks/{subtrunk_id}'

const listRoute = route({
  method: 'get',
  path: LIST,
  summary: 'List the subtrunks of a trunk',
  scope: 'service_configuration:read',
  replies: { 200: listOf(SubtrunkSummary) },
  async run({ db, trunk }) {
    const data: Static<typeof SubtrunkSummary>[] = []
    for (const row of await listSubtrunks(db, trunk.id)) data.push(await presentSummary(db, trunk, row))
    return { status: 200, revision: trunk.revision, body: { data } }
  },
})

const createRoute = route({
  method: 'post',
  path: LIST,
  summary: 'Create a subtrunk: a share of a trunk with its own ceilings',
  scope: 'service_configuration:write',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.created' },
  body: input('CreateSubtrunkRequest', {
    name: Name,
    status: oneOf('enabled', 'disabled'),
    configuration: optional(Configuration),
  }),
  replies: { 201: SubtrunkDetail },
  refusals: ['trunk_releasing'],
  example: { name: 'Reseller A', status: 'enabled', configuration: { concurrency: 5, cps: 1 } },
  async run({ db, project, trunk, body, now, services }) {
    const gone = releasing(trunk)
    if (gone) return gone
    const row: SubtrunkRow = {
      id: newSubtrunkId(),
      project_id: project.id,
      trunk_id: trunk.id,
      name: body.name,
      status: body.status,
      concurrency: null,
      cps: null,
      daily_spend_cap_minor: null,
      velocity_cap_minor: null,
      max_call_duration_seconds: null,
      max_destination_rate_minor: null,
      ...body.configuration,
      revision: 1,
      created_at: now,
      updated_at: now,
    }
    await insertSubtrunk(db, row)
    const detail = await presentDetail(db, project, trunk, row, services.clock.now())
    return {
      status: 201,
      revision: 1,
      headers: { Location: `/v1/trunks/${trunk.id}/subtrunks/${row.id}` },
      body: detail,
      change: subtrunkChange(`Created subtrunk ${row.name}`, row, null, detail),
    }
  },
})

const readRoute = route({
  method: 'get',
  path: ONE,
  summary: 'Read a subtrunk',
  scope: 'service_configuration:read',
  replies: { 200: SubtrunkDetail },
  async run({ db, project, trunk, subtrunk, services }) {
    const body = await presentDetail(db, project, trunk, subtrunk, services.clock.now())
    return { status: 200, revision: subtrunk.revision, body }
  },
})

const updateRoute = route({
  method: 'patch',
  path: ONE,
  summary: 'Change the name or ceilings of a subtrunk; what is left out stays',
  scope: 'service_configuration:write',
  if_match: 'subtrunk',
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.updated' },
  body: input('UpdateSubtrunkRequest', { name: optional(Name), configuration: optional(Configuration) }),
  replies: { 200: SubtrunkDetail },
  refusals: ['state_conflict'],
  async run({ db, project, trunk, subtrunk, body, now, services }) {
    if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
    const now_ms = services.clock.now()
    const before = await presentDetail(db, project, trunk, subtrunk, now_ms)
    const changes = { ...body.configuration, ...(body.name === undefined ? {} : { name: body.name }) }
    const saved = await saveSubtrunk(db, subtrunk, changes, now)
    const after = await presentDetail(db, project, trunk, saved, now_ms)
    const change = subtrunkChange(`Saved subtrunk ${saved.name}`, saved, before, after)
    return { status: 200, revision: saved.revision, body: after, change }
  },
})

const deleteRoute = route({
  method: 'delete',
  path: ONE,
  summary: 'Release a subtrunk without delegations; calls in progress go on',
  scope: 'service_configuration:write',
  if_match: 'subtrunk',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'subtrunk.released' },
  body: input('ReleaseSubtrunkRequest', { confirm_name: Type.String({ maxLength: 240 }) }),
  replies: { 204: null },
  refusals: ['state_conflict', 'confirm_name_mismatch'],
  async run({ db, project, trunk, subtrunk, body, now, services }) {
    if (body.confirm_name !== subtrunk.name) return refuse('confirm_name_mismatch', { value: body.confirm_name })
    if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
    const delegations = await listDelegations(db, subtrunk.id)
    if (delegations.length > 0)
      return refuse('state_conflict', {
        name: subtrunk.name,
        value: `in possession of ${delegations.length} delegations`,
      })
    const before = await presentDetail(db, project, trunk, subtrunk, services.clock.now())
    const saved = await saveSubtrunk(db, subtrunk, { status: 'releasing' }, now)
    const change = subtrunkChange(`Released subtrunk ${subtrunk.name}`, saved, before, null)
    return { status: 204, change, wake: wakeJobs(subtrunk.id) }
  },
})

const statusRoute = (action: 'suspend' | 'resume') => {
  const status = action === 'suspend' ? 'disabled' : 'enabled'
  return route({
    method: 'post',
    path: `/trunks/{trunk_id}/subtrunks/{subtrunk_id}/${action}`,
    summary: action === 'suspend' ? 'Stop admitting new calls of a subtrunk' : 'Admit new calls of a subtrunk again',
    scope: 'service_configuration:write',
    if_match: 'subtrunk',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: `subtrunk.${action === 'suspend' ? 'suspended' : 'resumed'}` },
    replies: { 200: SubtrunkDetail },
    refusals: ['state_conflict'],
    async run({ db, project, trunk, subtrunk, now, services }) {
      if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
      const now_ms = services.clock.now()
      const before = await presentDetail(db, project, trunk, subtrunk, now_ms)
      if (subtrunk.status === status) return { status: 200, revision: subtrunk.revision, body: before, change: null }
      const saved = await saveSubtrunk(db, subtrunk, { status }, now)
      const after = await presentDetail(db, project, trunk, saved, now_ms)
      const summary = `${action === 'suspend' ? 'Suspended' : 'Resumed'} subtrunk ${saved.name}`
      return {
        status: 200,
        revision: saved.revision,
        body: after,
        change: subtrunkChange(summary, saved, before, after),
      }
    },
  })
}

const delegationsRoute = route({
  method: 'get',
  path: `/trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations`,
  summary: 'List the number ranges that a subtrunk has',
  scope: 'service_configuration:read',
  replies: { 200: listOf(Delegation) },
  async run({ db, subtrunk }) {
    const data = (await listDelegations(db, subtrunk.id)).map(presentDelegation)
    return { status: 200, revision: subtrunk.revision, body: { data } }
  },
})

const delegateRoute = route({
  method: 'post',
  path: `/trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations`,
  summary: 'Delegate a number block, or a range of it, to a subtrunk',
  scope: 'numbers:manage',
  if_match: 'subtrunk',
  idempotent: true,
  applies: true,
  audit: { kind: 'numbers', action: 'number_block.delegated' },
  body: input('SubtrunkDelegationRequest', {
    block_id: Type.String({ maxLength: 128 }),
    start: optional(E164),
    end: optional(E164),
  }),
  replies: { 201: Delegation },
  refusals: ['number_in_use', 'state_conflict'],
  async run({ db, subtrunk, caller, body, now }) {
    if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
    const made = await delegateTo(db, subtrunk, body, { now, assigned_by: caller.actor.name })
    if (isRefusal(made)) return made
    const saved = await saveSubtrunk(db, subtrunk, {}, now)
    return {
      status: 201,
      revision: saved.revision,
      body: presentDelegation(made),
      change: delegationChange(saved, made),
    }
  },
})

const detachRoute = route({
  method: 'delete',
  path: `/trunks/{trunk_id}/subtrunks/{subtrunk_id}/delegations/{delegation_id}`,
  summary: 'Take a number range back; its numbers are routed to the trunk again',
  scope: 'numbers:manage',
  if_match: 'subtrunk',
  applies: true,
  audit: { kind: 'numbers', action: 'number_block.detached' },
  replies: { 204: null },
  async run({ db, trunk, subtrunk, params, now }) {
    const row = (await listDelegations(db, subtrunk.id)).find(({ id }) => id === params.delegation_id)
    if (!row) return notFound(`delegation ${params.delegation_id.slice(0, 60)}`)
    await detachDelegation(db, row.id)
    for (const number of await numbersOfRange(db, subtrunk.project_id, row))
      if (number.route_kind === 'subtrunk' && number.route_id === subtrunk.id)
        await saveNumber(db, number, { route_kind: 'trunk', route_id: trunk.id }, now)
    const saved = await saveSubtrunk(db, subtrunk, {}, now)
    const change = {
      ...delegationChange(saved, row),
      summary: `Took ${row.start} to ${row.end} back from subtrunk ${subtrunk.name}`,
      before: presentDelegation(row),
      after: null,
    }
    return { status: 204, revision: saved.revision, change }
  },
})

export const subtrunks = [
  listRoute,
  createRoute,
  readRoute,
  updateRoute,
  deleteRoute,
  statusRoute('suspend'),
  statusRoute('resume'),
  delegationsRoute,
  delegateRoute,
  detachRoute,
]
