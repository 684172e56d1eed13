import { sql } from 'kysely'
import type { AnyDb } from './create-tables.ts'

/**
 * A released number remembers the trunk that it rang, while it is quarantined. A policy attachment remembers the
 * revision of its policy that every node has applied.
 */
export async function up(db: AnyDb): Promise<void> {
  await db.schema.alterTable('number').addColumn('last_trunk_id', 'text').execute()
  await db.schema
    .createIndex('number_last_trunk')
    .on('number')
    .column('last_trunk_id')
    .where(sql.raw<boolean>('last_trunk_id is not null'))
    .execute()
  await db.schema
    .alterTable('policy_attachment')
    .addColumn('applied_revision', 'bigint', column => column.notNull().defaultTo(0))
    .execute()
  await db
    .updateTable('policy_attachment')
    .set(eb => ({
      applied_revision: eb
        .selectFrom('outbound_policy')
        .select('outbound_policy.revision')
        .whereRef('outbound_policy.id', '=', 'policy_attachment.policy_id'),
    }))
    .where('applied_at', 'is not', null)
    .execute()
}
