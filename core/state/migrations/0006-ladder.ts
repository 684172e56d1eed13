import type { Kysely } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await db.schema.alterTable('call_attempt').addColumn('sip_call_id', 'text').execute()
  await db.schema
    .createTable('sip_message')
    .addColumn('id', 'integer', column => column.primaryKey().autoIncrement())
    .addColumn('sip_call_id', 'text', column => column.notNull())
    .addColumn('at_ms', 'bigint', column => column.notNull())
    .addColumn('direction', 'text', column => column.notNull())
    .addColumn('protocol', 'text', column => column.notNull())
    .addColumn('local', 'text', column => column.notNull())
    .addColumn('remote', 'text', column => column.notNull())
    .addColumn('retransmission', 'bigint', column => column.notNull())
    .addColumn('text', 'text', column => column.notNull())
    .execute()
  await db.schema.createIndex('sip_message_call').on('sip_message').columns(['sip_call_id', 'id']).execute()
  await db.schema.createIndex('sip_message_age').on('sip_message').column('at_ms').execute()
}
