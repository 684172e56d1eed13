import { type Kysely, sql } from 'kysely'

/**
 * The steps of a trunk lie beside each other, in the order in which a window reads them: a table is its primary key.
 * With a row id each of a window's rows was a page of its own once the file had grown.
 */
// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export async function up(db: Kysely<any>): Promise<void> {
  for (const table of ['trunk_step', 'trunk_step_failure']) {
    const { rows } = await sql<{ sql: string }>`select sql from sqlite_master where name = ${table}`.execute(db)
    const [made] = rows
    if (!made) throw new Error(`there is no table ${table}`)
    await sql`alter table ${sql.table(table)} rename to ${sql.table(`${table}_before`)}`.execute(db)
    await sql.raw(`${made.sql} without rowid`).execute(db)
    await sql`insert into ${sql.table(table)} select * from ${sql.table(`${table}_before`)}`.execute(db)
    await db.schema.dropTable(`${table}_before`).execute()
    await db.schema.createIndex(`${table}_age`).on(table).columns(['step_ms', 'begin_ms']).execute()
  }
}
