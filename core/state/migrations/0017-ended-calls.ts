import type { Kysely } from 'kysely'

/** Records are followed in the order in which their calls ended, whatever their trunk: traces are made of them. */
// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await db.schema.createIndex('cdr_ended').on('cdr').column('ended_at').execute()
}
