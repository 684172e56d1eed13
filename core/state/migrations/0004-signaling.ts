import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .createTable('target_evidence')
    .addColumn('target_id', 'text', column => column.notNull())
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('misses', 'bigint', column => column.notNull())
    .addColumn('last_code', 'bigint')
    .addColumn('address', 'text')
    .addColumn('checked_at', 'text', column => column.notNull())
    .addPrimaryKeyConstraint('target_evidence_key', ['target_id', 'node_id'] as never[])
    .execute()
  await db.schema
    .createTable('media_quality')
    .addColumn('id', 'integer', column => column.primaryKey().autoIncrement())
    .addColumn('call_sid', 'text', column => column.notNull())
    .addColumn('leg_id', 'text', column => column.notNull())
    .addColumn('at', 'text', column => column.notNull())
    .addColumn('stats', 'text', column => column.notNull())
    .execute()
  await db.schema.createIndex('media_quality_call').on('media_quality').column('call_sid').execute()
  await sql`create index outbox_call on outbox (call_sid, url)`.execute(db)
}
