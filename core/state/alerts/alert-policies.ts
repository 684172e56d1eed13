import type { Selectable } from 'kysely'
import { ALERT_KINDS, type AlertPolicy, DEFAULT_POLICIES } from '../../domain/alerts/index.ts'
import { newId } from '../../runtime/ids.ts'
import type { AlertPolicyTable, AlertSettingTable, Db, Trx } from '../db.ts'

export type AlertPolicyRow = Selectable<AlertPolicyTable>
export type AlertSettingRow = Selectable<AlertSettingTable>

export const policyOfRow = (row: AlertPolicyRow): AlertPolicy => ({
  id: row.id,
  revision: row.revision,
  kind: row.kind,
  enabled: row.enabled === 1,
  channels: JSON.parse(row.channels),
  scope: JSON.parse(row.scope),
  threshold: JSON.parse(row.threshold),
  resolution: JSON.parse(row.resolution),
  platform_ceiling_minor: row.platform_ceiling_minor,
  platform_ceiling_window_seconds: row.platform_ceiling_window_seconds,
})

/** Creates the alert policies that an organization lacks, one of each kind. */
export async function ensureAlertPolicies(
  trx: Trx,
  organization: { readonly id: string; readonly name: string },
  now: string,
): Promise<void> {
  const known = new Set((await listAlertPolicies(trx, organization.id)).map(row => row.kind))
  const missing = ALERT_KINDS.filter(kind => !known.has(kind))
  if (missing.length === 0) return
  await trx
    .insertInto('alert_policy')
    .values(
      missing.map(kind => {
        const policy = DEFAULT_POLICIES[kind]
        return {
          id: `alp_${newId.uuid()}`,
          revision: 1,
          organization_id: organization.id,
          kind,
          enabled: 1 as const,
          channels: JSON.stringify(policy.channels),
          scope: JSON.stringify({ id: organization.id, label: organization.name, type: 'organization' }),
          threshold: JSON.stringify(policy.threshold),
          resolution: JSON.stringify(policy.resolution),
          platform_ceiling_minor: policy.platform_ceiling_minor,
          platform_ceiling_window_seconds: policy.platform_ceiling_window_seconds,
          newest: 1 as const,
          updated_at: now,
          updated_by: 'system',
        }
      }),
    )
    .execute()
}

/** Lists the newest revision of each policy. */
export const listAlertPolicies = (db: Db | Trx, organization_id: string): Promise<AlertPolicyRow[]> =>
  db
    .selectFrom('alert_policy')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('newest', '=', 1)
    .orderBy('kind')
    .execute()

export const findAlertPolicy = (
  db: Db | Trx,
  organization_id: string,
  id: string,
): Promise<AlertPolicyRow | undefined> =>
  db
    .selectFrom('alert_policy')
    .selectAll()
    .where('id', '=', id)
    .where('organization_id', '=', organization_id)
    .where('newest', '=', 1)
    .executeTakeFirst()

/** Inserts the next revision of a policy. Earlier revisions stay unchanged. */
export async function revisePolicy(
  trx: Trx,
  row: AlertPolicyRow,
  changes: Partial<Pick<AlertPolicyRow, 'enabled' | 'channels' | 'scope' | 'threshold' | 'resolution'>>,
  by: { readonly updated_at: string; readonly updated_by: string },
): Promise<AlertPolicyRow> {
  const next: AlertPolicyRow = { ...row, ...changes, ...by, revision: row.revision + 1, newest: 1 }
  await trx
    .updateTable('alert_policy')
    .set({ newest: 0 })
    .where('id', '=', row.id)
    .where('revision', '=', row.revision)
    .execute()
  await trx.insertInto('alert_policy').values(next).execute()
  return next
}

/** Returns a project's alert settings. Revision 0 holds the defaults of a project without settings. */
export async function alertSettings(db: Db | Trx, project_id: string): Promise<AlertSettingRow> {
  const row = await db.selectFrom('alert_setting').selectAll().where('project_id', '=', project_id).executeTakeFirst()
  return (
    row ?? {
      project_id,
      email_recipients: null,
      sms_recipients: '[]',
      quiet_from: null,
      quiet_to: null,
      revision: 0,
      updated_at: '1970-01-01T00:00:00.000Z',
    }
  )
}

export async function putAlertSettings(trx: Trx, row: AlertSettingRow): Promise<void> {
  await trx
    .insertInto('alert_setting')
    .values(row)
    .onConflict(conflict => conflict.column('project_id').doUpdateSet(row))
    .execute()
}
