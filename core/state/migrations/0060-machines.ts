import type { AnyDb } from './columns.ts'

// Whose processes nodes are, whose edge a SIP message crossed, and who is delivering a callback. Rows of before are
// nobody's: their processes are gone.

export async function up(db: AnyDb): Promise<void> {
  for (const name of ['machine_id', 'boot_id'])
    await db.schema
      .alterTable('node')
      .addColumn(name, 'text', column => column.notNull().defaultTo(''))
      .execute()
  await db.schema
    .alterTable('sip_message')
    .addColumn('edge_id', 'text', column => column.notNull().defaultTo(''))
    .execute()
  await db.schema.alterTable('outbox').addColumn('lease_by', 'text').execute()
}
