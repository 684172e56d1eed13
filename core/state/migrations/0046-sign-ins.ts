import type { Kysely } from 'kysely'

// Failed sign-ins are counted by account and address, in memory: no row tells who was guessed at.

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  for (const column of ['failed_attempts', 'locked_until'])
    await db.schema.alterTable('member_security').dropColumn(column).execute()
}
