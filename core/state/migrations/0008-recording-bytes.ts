import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
type AnyDb = Kysely<any>

/** The bytes of a project's recordings are counted before each new one: from the index alone. */
export async function up(db: AnyDb): Promise<void> {
  await sql`drop index recording_project`.execute(db)
  await sql`create index recording_project on recording (project_id, status, bytes)`.execute(db)
}
