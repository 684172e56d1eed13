import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

/** Callbacks by when they are due: a receiver that is down for an hour leaves many that are not. */
export async function up(db: AnyDb): Promise<void> {
  await sql`create index outbox_due on outbox (next_attempt_at) where delivered = 0 and given_up = 0`.execute(db)
}
