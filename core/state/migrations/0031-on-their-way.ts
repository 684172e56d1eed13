import { type Kysely, sql } from 'kysely'

/**
 * What background tasks look for every second or two is a handful of rows among a hundred thousand: each has an index
 * of just those, which a write of any other row does not touch. A query finds it by the same condition, literally.
 */
// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  await sql`create index trunk_releasing on trunk (id) where status = 'releasing'`.execute(db)
  await sql`create index subtrunk_releasing on subtrunk (id) where status = 'releasing'`.execute(db)
  await sql`create index digest_credential_unapplied on digest_credential (id)
    where new_applied_at is null and revoked_at is null`.execute(db)
  await sql`create index policy_attachment_unapplied on policy_attachment (attached_at)
    where applied_at is null`.execute(db)
}
