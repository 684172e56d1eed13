import { sql } from 'kysely'
import type { Db } from '../db.ts'

/** Writes a consistent copy of the database to `file`, which must not exist. Readers and writers are not blocked. */
export async function copyDatabase(db: Db, file: string): Promise<void> {
  await sql`vacuum into ${file}`.execute(db)
}

/** Runs SQLite's integrity check. Returns its findings; empty when the database is sound. */
export async function faultsOf(db: Db): Promise<string[]> {
  const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(10)`.execute(db)
  return rows.map(row => row.integrity_check).filter(finding => finding !== 'ok')
}
