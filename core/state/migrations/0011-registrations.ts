import type { Kysely } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .createTable('registration')
    .addColumn('credential_id', 'text', column => column.notNull())
    .addColumn('contact', 'text', column => column.notNull())
    .addColumn('trunk_id', 'text', column => column.notNull())
    .addColumn('source_address', 'text', column => column.notNull())
    .addColumn('source_port', 'bigint', column => column.notNull())
    .addColumn('transport', 'text', column => column.notNull())
    .addColumn('user_agent', 'text')
    .addColumn('registered_at', 'text', column => column.notNull())
    .addColumn('expires_at', 'text', column => column.notNull())
    .addPrimaryKeyConstraint('registration_key', ['credential_id', 'contact'] as never[])
    .execute()
  await db.schema.createIndex('registration_trunk').on('registration').column('trunk_id').execute()
}
