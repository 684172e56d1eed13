import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { findPolicy, listRules } from '../../core/state/configuration/policies.ts'
import { findAttachment } from '../../core/state/configuration/policy-attachments.ts'
import { listDelegations, type SubtrunkRow } from '../../core/state/configuration/subtrunks.ts'
import type { TrunkRow } from '../../core/state/configuration/trunks.ts'
import type { Db } from '../../core/state/index.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import type { Change } from '../http/reply.ts'
import {
  Count64,
  Currency,
  Int32,
  input,
  list,
  Money,
  nullable,
  oneOf,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { AttachedPolicy, attachedPolicy } from './attached-policy.ts'
import { Delegation, presentDelegation } from './delegations.ts'
import { TrunkStatus } from './trunk-schemas.ts'
import { presentUsage, usageFields } from './usage.ts'

const ceilings = {
  concurrency: nullable(Int32),
  cps: nullable(Int32),
  daily_spend_cap_minor: nullable(Money),
  velocity_cap_minor: nullable(Money),
  max_call_duration_seconds: nullable(Int32),
  max_destination_rate_minor: nullable(Money),
}

const Destinations = list(Type.String())

export const SubtrunkSummary = resource('SubtrunkSummary', {
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

export const SubtrunkDetail = resource('SubtrunkDetail', {
  configuration: resource('SubtrunkConfiguration', ceilings),
  delegations: list(Delegation),
  id: Type.String(),
  inheritance: resource('SubtrunkInheritance', {
    organization_allowed_destinations: Destinations,
    parent_limits: resource('ParentLimits', { concurrency: Int32, cps: Int32, max_call_duration_seconds: Int32 }),
  }),
  name: Type.String(),
  organization_id: Type.String(),
  outbound_policy: nullable(AttachedPolicy),
  revision: Count64,
  status: TrunkStatus,
  trunk_id: Type.String(),
  usage: resource('SubtrunkUsage', { ...usageFields, refused_calls: Int32 }),
})
type Detail = Static<typeof SubtrunkDetail>

/** Requires every ceiling, so that an omitted one is not cleared by mistake; null means no ceiling. */
export const SubtrunkConfigurationInput = input('SubtrunkConfigurationInput', ceilings)

/** Returns the destinations that a service's policy allows, as the customer wrote them; empty means all. */
async function allowedBy(db: Db, project_id: string, type: 'trunk' | 'subtrunk', id: string): Promise<string[]> {
  const attachment = await findAttachment(db, type, id)
  const policy = attachment && (await findPolicy(db, project_id, attachment.policy_id))
  return policy ? (await listRules(db, policy.id, 'allow')).map(rule => rule.value) : []
}

export async function presentSubtrunkSummary(
  db: Db,
  trunk: TrunkRow,
  row: SubtrunkRow,
): Promise<Static<typeof SubtrunkSummary>> {
  const delegations = await listDelegations(db, row.id)
  const attachment = await findAttachment(db, 'trunk', trunk.id)
  const policy = attachment && (await findPolicy(db, trunk.project_id, attachment.policy_id))
  return {
    currency: CURRENCY,
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

export async function presentSubtrunk(
  db: Db,
  project: Pick<ProjectRow, 'organization_id'>,
  trunk: TrunkRow,
  row: SubtrunkRow,
  now_ms: number,
): Promise<Detail> {
  const { shown, usage } = await presentUsage(db, 'subtrunk', row.id, now_ms)
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
    outbound_policy: await attachedPolicy(db, row.project_id, { type: 'subtrunk', id: row.id }),
    revision: row.revision,
    status: row.status,
    trunk_id: trunk.id,
    usage: { ...shown, refused_calls: usage.refused_calls },
  }
}

export const subtrunkChange = (
  summary: string,
  row: SubtrunkRow,
  before: Detail | null,
  after: Detail | null,
): Change => ({
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
