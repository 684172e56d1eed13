import type { Selectable } from 'kysely'
import type { ReadRule } from '../../domain/policies/rules.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, OutboundPolicyTable, PolicyRuleTable, Trx } from '../db.ts'

export type PolicyRow = Selectable<OutboundPolicyTable>
type PolicyRuleRow = Selectable<PolicyRuleTable>

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

/** Counts the policies of a project that are not archived, its default one among them. */
export const countPolicies = async (trx: Trx, project_id: string): Promise<number> => {
  const { count } = await trx
    .selectFrom('outbound_policy')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('project_id', '=', project_id)
    .where('status', '=', 'active')
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const newPolicyId = (): string => `pol_${newId.uuid()}`

/**
 * The ceilings of a new project's default policy: enough for a busy office, and they bound what a stolen credential can
 * spend before anybody has set a ceiling. Money is in kobo: 500,000 a day, 10,000 a minute.
 */
const CAREFUL = {
  concurrency: 1000,
  cps: 200,
  daily_spend_limit_minor: 50_000_000,
  max_call_duration_seconds: 14_400,
  max_destination_rate_minor: 1_000_000,
} as const

/** Creates the default policy of a new project. */
export const insertDefaultPolicy = (
  trx: Trx,
  project: { readonly id: string; readonly billing_account_id: string },
  now: string,
): Promise<void> =>
  insertPolicy(trx, {
    id: newPolicyId(),
    project_id: project.id,
    name: 'Default',
    status: 'active',
    system_default: 1,
    billing_group: project.billing_account_id,
    ...CAREFUL,
    calling_hours: null,
    recording_mode: 'off',
    recording_channels: 2,
    recording_retention_days: 30,
    revision: 1,
    created_at: now,
    created_by: null,
    updated_at: now,
  })

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

/** Archives a policy. Its services must be detached first. A default policy is never archived. */
export const archivePolicy = (trx: Trx, policy: PolicyRow, now: string): Promise<PolicyRow> =>
  savePolicy(trx, policy, { status: 'archived' }, now)

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
