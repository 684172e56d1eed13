import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .createTable('simulated_call')
    .addColumn('position', 'integer', column => column.primaryKey().autoIncrement())
    .addColumn('id', 'text', column => column.notNull().unique())
    .addColumn('project_id', 'text', column => column.notNull())
    .addColumn('to_number', 'text', column => column.notNull())
    .addColumn('message', 'text', column => column.notNull())
    .addColumn('created_at', 'text', column => column.notNull())
    .execute()
  await db.schema
    .createIndex('simulated_call_project')
    .on('simulated_call')
    .columns(['project_id', 'position'])
    .execute()
  await db.schema.alterTable('recording').addColumn('expires_at', 'text').execute()
  await sql`create index recording_plain on recording (sid) where status = 'completed' and file not like '%.sealed'`.execute(
    db,
  )
  await sql`create index recording_expiry on recording (expires_at) where status = 'completed'`.execute(db)
  await sql`create index recording_project on recording (project_id, status)`.execute(db)
}
