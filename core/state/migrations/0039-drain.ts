import type { Kysely } from 'kysely'

// Since when a signaling node takes no new call.

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await db.schema.alterTable('node').addColumn('draining_at', 'text').execute()
}
