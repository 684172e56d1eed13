import type { Kysely } from 'kysely'

// Whoever has a SIP message asks which call it belongs to.

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await db.schema.createIndex('call_sip_call_id').on('call').column('sip_call_id').execute()
  await db.schema.createIndex('call_attempt_sip_call_id').on('call_attempt').column('sip_call_id').execute()
}
