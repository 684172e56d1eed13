import { type Kysely, sql } from 'kysely'

/** Runs of trunk tests and their checks. */
// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await db.schema
    .createTable('trunk_test_run')
    .addColumn('id', 'text', column => column.primaryKey().notNull())
    .addColumn('project_id', 'text', column => column.notNull())
    .addColumn('trunk_id', 'text', column => column.notNull())
    .addColumn('requested_kind', 'text', column => column.notNull())
    .addColumn('requested_revision', 'bigint', column => column.notNull())
    .addColumn('destination', 'text')
    .addColumn('result', 'text', column => column.notNull())
    .addColumn('finding', 'text')
    .addColumn('call_sid', 'text')
    .addColumn('call_summary', 'text')
    .addColumn('configuration_revision', 'bigint')
    .addColumn('run_by', 'text', column => column.notNull())
    .addColumn('scheduled', 'bigint', column => column.notNull())
    .addColumn('node_id', 'text')
    .addColumn('started_at', 'text', column => column.notNull())
    .addColumn('finished_at', 'text')
    .execute()
  await db.schema.createIndex('trunk_test_run_trunk').on('trunk_test_run').columns(['trunk_id', 'started_at']).execute()
  await sql`create index trunk_test_run_running on trunk_test_run (started_at) where result = 'running'`.execute(db)
  await db.schema
    .createTable('trunk_test_check')
    .addColumn('id', 'text', column => column.primaryKey().notNull())
    .addColumn('run_id', 'text', column => column.notNull())
    .addColumn('sequence', 'bigint', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('summary', 'text')
    .addColumn('target_ref', 'text')
    .addColumn('node_id', 'text')
    .addColumn('duration_ms', 'bigint')
    .addColumn('occurred_at', 'text')
    .execute()
  await db.schema.createIndex('trunk_test_check_run').on('trunk_test_check').columns(['run_id', 'sequence']).execute()
}
