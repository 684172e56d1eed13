import { type ReadRule, readRule } from '../../core/domain/policies/rules.ts'
import { reasonSentence } from '../../core/domain/reasons/index.ts'
import {
  archivePolicy,
  changeRules,
  countPolicies,
  insertPolicy,
  listPolicies,
  newPolicyId,
  type PolicyRow,
  savePolicy,
} from '../../core/state/configuration/policies.ts'
import { listAttachments, reapplyPolicy } from '../../core/state/configuration/policy-attachments.ts'
import { type Change, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import {
  Int32,
  input,
  line,
  list,
  listOf,
  Money,
  Name,
  nullable,
  oneOf,
  optional,
  type Static,
  Type,
} from '../http/schema.ts'
import {
  CallingWindow,
  PolicyAttachment,
  PolicyDetail,
  PolicySummary,
  presentAttachments,
  presentPolicy,
  presentPolicyDetail,
} from './outbound-policy-present.ts'
import { detachAttached } from './policy-attachments.ts'
import { route } from './route.ts'

const MAX_RULE_CHANGES = 500
/** The most policies of a project. */
const MAX_POLICIES = 1000

const OutboundPolicyRequest = input('OutboundPolicyRequest', {
  name: Name,
  recording_channels: Type.Literal(2),
  recording_mode: oneOf('off', 'all'),
  recording_retention_days: Type.Union([Type.Literal(30), Type.Literal(90), Type.Literal(365)]),
  calling_hours: optional(nullable(list(CallingWindow, { maxItems: 20 }))),
  concurrency: optional(nullable(Int32)),
  cps: optional(nullable(Int32)),
  daily_spend_limit_minor: optional(nullable(Money)),
  max_call_duration_seconds: optional(nullable(Int32)),
  max_destination_rate_minor: optional(nullable(Money)),
})

/** Returns the hours of a body as the state keeps them. A body that omits them keeps their value. */
const hoursOf = ({
  calling_hours: hours,
}: Static<typeof OutboundPolicyRequest>): Partial<Pick<PolicyRow, 'calling_hours'>> =>
  hours === undefined ? {} : { calling_hours: hours === null ? null : JSON.stringify(hours) }

const DestinationRuleChange = input('DestinationRuleChange', {
  kind: oneOf('country', 'prefix'),
  op: oneOf('allow', 'deny', 'remove'),
  value: Type.String({ minLength: 1, maxLength: 20 }),
  label: optional(nullable(line(120, 0))),
})

const CEILINGS = [
  'concurrency',
  'cps',
  'daily_spend_limit_minor',
  'max_call_duration_seconds',
  'max_destination_rate_minor',
] as const

/** Returns the ceilings in a body. Ceilings that it omits keep their values. */
function ceilingsOf(body: Static<typeof OutboundPolicyRequest>): Partial<Pick<PolicyRow, (typeof CEILINGS)[number]>> {
  const given: Partial<Record<(typeof CEILINGS)[number], number | null>> = {}
  for (const name of CEILINGS) {
    const value = body[name]
    if (value !== undefined) given[name] = value
  }
  return given
}

const policyChange = (
  summary: string,
  policy: PolicyRow,
  before: Static<typeof PolicyDetail> | null,
  after: Static<typeof PolicyDetail> | null,
): Change => ({
  resource: { type: 'outbound_policy', id: policy.id, name: policy.name, href: `/v1/outbound-policies/${policy.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: policy.revision,
})

const EXAMPLE = {
  name: 'Domestic calls',
  recording_channels: 2,
  recording_mode: 'off',
  recording_retention_days: 30,
  concurrency: 20,
  cps: 5,
  daily_spend_limit_minor: 5_000_000,
  max_call_duration_seconds: 3600,
  max_destination_rate_minor: 4000,
  calling_hours: [{ days: ['monday', 'friday'], from: '08:00', to: '18:30' }],
}

const listRoute = route({
  method: 'get',
  path: '/outbound-policies',
  summary: 'List the outbound policies of the project',
  scope: 'service_configuration:read',
  replies: { 200: listOf(PolicySummary) },
  async run({ db, project, services }) {
    const data: Static<typeof PolicySummary>[] = []
    for (const policy of await listPolicies(db, project.id))
      data.push(await presentPolicy(db, project, policy, services.clock.now()))
    return { status: 200, body: { data } }
  },
})

const createRoute = route({
  method: 'post',
  path: '/outbound-policies',
  summary: 'Create an outbound policy; it is live at once',
  scope: 'service_configuration:write',
  idempotent: true,
  audit: { kind: 'trunks', action: 'outbound_policy.created' },
  body: OutboundPolicyRequest,
  replies: { 201: PolicyDetail },
  refusals: ['limit_reached'],
  example: EXAMPLE,
  async run({ db, project, caller, body, now, services }) {
    const held = await countPolicies(db, project.id)
    if (held >= MAX_POLICIES)
      return refuse('limit_reached', { name: 'the project', value: `${held} policies`, limit: MAX_POLICIES })
    const policy: PolicyRow = {
      id: newPolicyId(),
      project_id: project.id,
      name: body.name,
      status: 'active',
      system_default: 0,
      billing_group: project.billing_account_id,
      concurrency: null,
      cps: null,
      daily_spend_limit_minor: null,
      max_call_duration_seconds: null,
      max_destination_rate_minor: null,
      calling_hours: null,
      ...ceilingsOf(body),
      ...hoursOf(body),
      recording_mode: body.recording_mode,
      recording_channels: body.recording_channels,
      recording_retention_days: body.recording_retention_days,
      revision: 1,
      created_at: now,
      created_by: caller.actor.name,
      updated_at: now,
    }
    await insertPolicy(db, policy)
    const detail = await presentPolicyDetail(db, project, policy, services.clock.now())
    return {
      status: 201,
      revision: 1,
      headers: { Location: `/v1/outbound-policies/${policy.id}` },
      body: detail,
      change: policyChange(`Created policy ${policy.name}`, policy, null, detail),
    }
  },
})

const readRoute = route({
  method: 'get',
  path: '/outbound-policies/{policy_id}',
  summary: 'Read an outbound policy',
  scope: 'service_configuration:read',
  replies: { 200: PolicyDetail },
  async run({ db, project, policy, services }) {
    const body = await presentPolicyDetail(db, project, policy, services.clock.now())
    return { status: 200, revision: policy.revision, body }
  },
})

const updateRoute = route({
  method: 'patch',
  path: '/outbound-policies/{policy_id}',
  summary: 'Save an outbound policy; every attached service takes it up in the background',
  scope: 'service_configuration:write',
  if_match: 'policy',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'outbound_policy.updated' },
  body: OutboundPolicyRequest,
  replies: { 200: PolicyDetail },
  async run({ db, project, policy, body, now, services }) {
    const now_ms = services.clock.now()
    const before = await presentPolicyDetail(db, project, policy, now_ms)
    const { name, recording_mode, recording_channels, recording_retention_days } = body
    const settings = {
      name,
      recording_mode,
      recording_channels,
      recording_retention_days,
      ...ceilingsOf(body),
      ...hoursOf(body),
    }
    const saved = await savePolicy(db, policy, settings, now)
    await reapplyPolicy(db, policy.id)
    const after = await presentPolicyDetail(db, project, saved, now_ms)
    return {
      status: 200,
      revision: saved.revision,
      body: after,
      change: policyChange(`Saved policy ${saved.name}`, saved, before, after),
      wake: ['jobs'] as const,
    }
  },
})

const deleteRoute = route({
  method: 'delete',
  path: '/outbound-policies/{policy_id}',
  summary: 'Delete an outbound policy; with detach=true its services are detached first',
  scope: 'service_configuration:write',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'outbound_policy.deleted' },
  query: Type.Object({ detach: optional(Type.Boolean()) }, { additionalProperties: false }),
  replies: { 204: null },
  refusals: ['policy_in_use', 'state_conflict'],
  async run({ db, project, policy, query, now, services }) {
    if (policy.system_default === 1)
      return refuse('state_conflict', { name: `policy ${policy.name}`, value: 'the default of the project' })
    const attachments = await listAttachments(db, policy.id)
    if (attachments.length > 0 && query.detach !== true)
      return refuse('policy_in_use', { name: policy.name, value: attachments.length })
    const before = await presentPolicyDetail(db, project, policy, services.clock.now())
    const detached: Change[] = []
    for (const attachment of attachments) detached.push(...(await detachAttached(db, project, attachment, policy, now)))
    const archived = await archivePolicy(db, policy, now)
    return {
      status: 204,
      change: [policyChange(`Deleted policy ${policy.name}`, archived, before, null), ...detached],
    }
  },
})

const attachmentsRoute = route({
  method: 'get',
  path: '/outbound-policies/{policy_id}/attachments',
  summary: 'List the services that a policy is attached to',
  scope: 'service_configuration:read',
  replies: { 200: listOf(PolicyAttachment) },
  async run({ db, policy }) {
    return { status: 200, body: { data: await presentAttachments(db, policy) } }
  },
})

const rulesRoute = route({
  method: 'patch',
  path: '/outbound-policies/{policy_id}/destination-rules',
  summary: 'Allow, deny or remove destinations of a policy, in the order given',
  scope: 'service_configuration:write',
  if_match: 'policy',
  idempotent: true,
  applies: true,
  audit: { kind: 'trunks', action: 'outbound_policy.destinations_changed' },
  body: input('DestinationRuleChanges', {
    rules: Type.Array(DestinationRuleChange, { minItems: 1, maxItems: MAX_RULE_CHANGES }),
  }),
  replies: { 200: PolicyDetail },
  refusals: ['country_code_shared'],
  example: { rules: [{ kind: 'country', op: 'allow', value: 'NG', label: null }] },
  async run({ db, project, policy, body, now, services }) {
    const rules = readRules(body.rules)
    if (isRefusal(rules)) return rules
    const now_ms = services.clock.now()
    const before = await presentPolicyDetail(db, project, policy, now_ms)
    await changeRules(db, policy.id, rules, now)
    const saved = await savePolicy(db, policy, {}, now)
    await reapplyPolicy(db, policy.id)
    const after = await presentPolicyDetail(db, project, saved, now_ms)
    return {
      status: 200,
      revision: saved.revision,
      body: after,
      change: policyChange(`Changed destinations of policy ${policy.name}`, saved, before, after),
      wake: ['jobs'] as const,
    }
  },
})

function readRules(
  changes: readonly Static<typeof DestinationRuleChange>[],
): readonly ReadRule[] | Refusal<'validation_failed' | 'country_code_shared'> {
  const rules: ReadRule[] = []
  for (const [at, change] of changes.entries()) {
    const read = readRule({ ...change, label: change.label ?? null })
    if ('rule' in read) rules.push(read.rule)
    else {
      const pointer = `/rules/${at}/value`
      return refuse(read.refused, read.facts, {
        errors: [{ pointer, message: reasonSentence(read.refused, read.facts) }],
      })
    }
  }
  return rules
}

export const outboundPolicies = [
  listRoute,
  createRoute,
  readRoute,
  updateRoute,
  deleteRoute,
  attachmentsRoute,
  rulesRoute,
]
