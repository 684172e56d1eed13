import type { Selectable } from 'kysely'
import type { ReadRule } from '../../domain/policies/rules.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, OutboundPolicyTable, PolicyAttachmentTable, PolicyRuleTable, PolicyServiceType, Trx } from '../db.ts'

export type PolicyRow = Selectable<OutboundPolicyTable>
type PolicyRuleRow = Selectable<PolicyRuleTable>
export type AttachmentRow = Selectable<PolicyAttachmentTable>

/** Finds a policy. Archived ones stay for call records but are not found. */
export const findPolicy = (db: Db | Trx, project_id: string, id: string): Promise<PolicyRow | undefined> =>
  db
    .selectFrom('outbound_policy')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('status', '=', 'active')
    .executeTakeFirst()

export const listPolicies = (db: Db | Trx, project_id: string): Promise<PolicyRow[]> =>
  db
    .selectFrom('outbound_policy')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('status', '=', 'active')
    .orderBy('name')
    .orderBy('id')
    .execute()

export const newPolicyId = (): string => `pol_${newId.uuid()}`

export async function insertPolicy(trx: Trx, row: PolicyRow): Promise<void> {
  await trx.insertInto('outbound_policy').values(row).execute()
}

/** Saves columns of a policy. Returns it at its next revision. Its ceilings apply from the next call on. */
export async function savePolicy(
  trx: Trx,
  policy: PolicyRow,
  changes: Partial<Omit<PolicyRow, 'id' | 'project_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<PolicyRow> {
  const saved = { ...changes, revision: policy.revision + 1, updated_at: now }
  await trx.updateTable('outbound_policy').set(saved).where('id', '=', policy.id).execute()
  return { ...policy, ...saved }
}

/** Archives a policy. Its services must be detached first. */
export const archivePolicy = (trx: Trx, policy: PolicyRow, now: string): Promise<PolicyRow> =>
  savePolicy(trx, policy, { status: 'archived', system_default: 0 }, now)

export function listRules(db: Db | Trx, policy_id: string, op?: 'allow' | 'deny'): Promise<PolicyRuleRow[]> {
  const query = db
    .selectFrom('policy_rule')
    .selectAll()
    .where('policy_id', '=', policy_id)
    .orderBy('prefix')
    .orderBy('kind')
  return (op ? query.where('op', '=', op) : query).execute()
}

interface RuleSummary {
  readonly allowed_countries: readonly string[]
  readonly allowed_prefixes: number
  readonly denied_prefixes: number
}

export async function summarizeRules(db: Db | Trx, policy_id: string): Promise<RuleSummary> {
  const counts = await db
    .selectFrom('policy_rule')
    .select(eb => ['op', 'kind', eb.fn.countAll<number>().as('count')])
    .where('policy_id', '=', policy_id)
    .groupBy(['op', 'kind'])
    .execute()
  const countries = await db
    .selectFrom('policy_rule')
    .select('value')
    .where('policy_id', '=', policy_id)
    .where('op', '=', 'allow')
    .where('kind', '=', 'country')
    .orderBy('value')
    .execute()
  const count = (op: 'allow' | 'deny', kind: 'country' | 'prefix'): number =>
    Number(counts.find(row => row.op === op && row.kind === kind)?.count ?? 0)
  return {
    allowed_countries: countries.map(({ value }) => value),
    allowed_prefixes: count('allow', 'prefix'),
    denied_prefixes: count('deny', 'prefix') + count('deny', 'country'),
  }
}

/** Applies rule changes in order: allow and deny set the rule of a kind and value, remove deletes it. */
export async function changeRules(
  trx: Trx,
  policy_id: string,
  changes: readonly ReadRule[],
  now: string,
): Promise<void> {
  for (const { kind, op, value, prefix, label } of changes) {
    if (op === 'remove')
      await trx
        .deleteFrom('policy_rule')
        .where('policy_id', '=', policy_id)
        .where('kind', '=', kind)
        .where('value', '=', value)
        .execute()
    else
      await trx
        .insertInto('policy_rule')
        .values({ id: `rul_${newId.uuid()}`, policy_id, op, kind, value, prefix, label, created_at: now })
        .onConflict(conflict => conflict.columns(['policy_id', 'kind', 'value']).doUpdateSet({ op, label }))
        .execute()
  }
}

export const listAttachments = (db: Db | Trx, policy_id: string): Promise<AttachmentRow[]> =>
  db
    .selectFrom('policy_attachment')
    .selectAll()
    .where('policy_id', '=', policy_id)
    .orderBy('attached_at')
    .orderBy('id')
    .execute()

export const findAttachment = (
  db: Db | Trx,
  service_type: PolicyServiceType,
  service_id: string,
): Promise<AttachmentRow | undefined> =>
  db
    .selectFrom('policy_attachment')
    .selectAll()
    .where('service_type', '=', service_type)
    .where('service_id', '=', service_id)
    .executeTakeFirst()

/** Reports whether the policy is attached to a trunk of the subaccount or to a subtrunk of such a trunk. */
export async function servesSubaccount(db: Db | Trx, policy_id: string, subaccount_id: string): Promise<boolean> {
  const row = await db
    .selectFrom('policy_attachment')
    .leftJoin('subtrunk', 'subtrunk.id', 'policy_attachment.service_id')
    .innerJoin('trunk', join =>
      join.on(eb =>
        eb.or([eb('trunk.id', '=', eb.ref('subtrunk.trunk_id')), eb('trunk.id', '=', eb.ref('service_id'))]),
      ),
    )
    .select('trunk.id')
    .where('policy_attachment.policy_id', '=', policy_id)
    .where('trunk.subaccount_id', '=', subaccount_id)
    .executeTakeFirst()
  return row !== undefined
}

type Service = Readonly<{ type: PolicyServiceType; id: string }>

/** Attaches a policy to a service in place of its previous one. Decisions read the rows, so it takes effect at once. */
export async function attachPolicy(trx: Trx, policy: PolicyRow, service: Service, now: string): Promise<AttachmentRow> {
  const set = { policy_id: policy.id, attached_at: now, applied_at: now }
  const row: AttachmentRow = {
    id: `pat_${newId.uuid()}`,
    project_id: policy.project_id,
    service_type: service.type,
    service_id: service.id,
    note: null,
    outbound_enabled: 1,
    ...set,
  }
  return trx
    .insertInto('policy_attachment')
    .values(row)
    .onConflict(conflict => conflict.columns(['service_id', 'service_type']).doUpdateSet(set))
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Detaches a service's policy. Returns false when it had none. */
export async function detachPolicy(trx: Trx, service: Service): Promise<boolean> {
  const result = await trx
    .deleteFrom('policy_attachment')
    .where('service_type', '=', service.type)
    .where('service_id', '=', service.id)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/** Counts, per policy, the services that it is attached to and those that have applied it. */
export async function countAttachments(
  db: Db | Trx,
  policy_ids: readonly string[],
): Promise<Map<string, { attached: number; applied: number }>> {
  if (policy_ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('policy_attachment')
    .select(eb => [
      'policy_id',
      eb.fn.countAll<number>().as('attached'),
      eb.fn.count<number>('applied_at').as('applied'),
    ])
    .where('policy_id', 'in', [...policy_ids])
    .groupBy('policy_id')
    .execute()
  return new Map(rows.map(row => [row.policy_id, { attached: Number(row.attached), applied: Number(row.applied) }]))
}

/** Makes every service of a policy apply it again. Each sets `applied_at` when it has. */
export async function reapplyPolicy(trx: Trx, policy_id: string): Promise<void> {
  await trx.updateTable('policy_attachment').set({ applied_at: null }).where('policy_id', '=', policy_id).execute()
}

/** Returns attachments whose service has not applied the policy yet, oldest first. */
export const unappliedAttachments = (db: Db | Trx, limit: number): Promise<AttachmentRow[]> =>
  db
    .selectFrom('policy_attachment')
    .selectAll()
    .where('applied_at', 'is', null)
    .orderBy('attached_at')
    .limit(limit)
    .execute()

export async function markApplied(db: Db | Trx, attachment_id: string, applied_at: string): Promise<void> {
  await db.updateTable('policy_attachment').set({ applied_at }).where('id', '=', attachment_id).execute()
}
