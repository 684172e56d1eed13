import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { MIGRATIONS } from '../migrations/index.ts'
import { DATABASE_FILE } from './database-file.ts'
import { isDamage } from './soundness.ts'

/** Returns the first migration that the database in `data_dir` lacks; null for one of this version, or none. */
export function missingMigration(data_dir: string): string | null {
  const file = join(data_dir, DATABASE_FILE)
  if (!existsSync(file)) return null
  try {
    const executed = new Set(executedIn(file))
    return Object.keys(MIGRATIONS).find(name => !executed.has(name)) ?? null
  } catch (error) {
    // Whoever opens it says what is wrong with it.
    if (isDamage(error)) return null
    throw error
  }
}

function executedIn(file: string): unknown[] {
  const database = new Database(file, { readonly: true })
  try {
    const exists = database.prepare("select 1 from sqlite_schema where name = 'kysely_migration'").get() !== undefined
    return exists ? database.prepare('select name from kysely_migration').pluck().all() : []
  } finally {
    database.close()
  }
}
