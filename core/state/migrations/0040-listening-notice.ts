import type { AnyDb } from './create-tables.ts'

/** What the parties of a call hear while a member of the organization listens to it. */
export async function up(db: AnyDb): Promise<void> {
  await db.schema
    .alterTable('organization')
    .addColumn('listening_notice', 'text', c => c.notNull().defaultTo('tone'))
    .execute()
}
