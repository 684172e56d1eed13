import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { AnyDb } from './create-tables.ts'

/**
 * Every project has one default policy. Attachments and delegations name the configuration revision that puts them in
 * force. Destinations are known per service, of which a trunk is one kind.
 */
export async function up(db: AnyDb): Promise<void> {
  for (const table of ['policy_attachment', 'delegation'])
    await db.schema
      .alterTable(table)
      .addColumn('revision', 'bigint', column => column.notNull().defaultTo(0))
      .execute()
  await db.schema
    .createIndex('delegation_unapplied')
    .on('delegation')
    .column('id')
    .where(sql.raw<boolean>("status <> 'applied'"))
    .execute()
  await db.schema
    .createIndex('outbound_policy_default')
    .on('outbound_policy')
    .column('project_id')
    .unique()
    .where(sql.raw<boolean>('system_default = 1'))
    .execute()
  await db.schema.alterTable('destination_profile').renameColumn('trunk_id', 'service_id').execute()
  const defaults = db.selectFrom('outbound_policy').select('project_id').where('system_default', '=', 1)
  const projects = await db
    .selectFrom('project')
    .select(['id', 'billing_account_id', 'created_at'])
    .where('id', 'not in', defaults)
    .execute()
  for (const { id, billing_account_id, created_at } of projects)
    await db
      .insertInto('outbound_policy')
      .values({
        id: `pol_${randomUUID()}`,
        project_id: id,
        name: 'Default',
        status: 'active',
        system_default: 1,
        billing_group: billing_account_id,
        concurrency: 1000,
        cps: 200,
        daily_spend_limit_minor: 50_000_000,
        max_call_duration_seconds: 14_400,
        max_destination_rate_minor: 1_000_000,
        recording_mode: 'off',
        recording_channels: 2,
        recording_retention_days: 30,
        revision: 1,
        created_at,
        created_by: null,
        updated_at: created_at,
      })
      .execute()
}
