import { Migrator } from 'kysely'
import { StartRefused } from '../../runtime/start-refused.ts'
import type { AnyDb } from '../migrations/create-tables.ts'
import { MIGRATIONS } from '../migrations/index.ts'

/** Migrates the schema to this version. Concurrent processes take turns. */
export async function migrate(db: AnyDb, data_dir: string): Promise<void> {
  const executed = await executedMigrations(db)
  const unknown = executed.find(name => !Object.hasOwn(MIGRATIONS, name))
  if (unknown !== undefined)
    throw new StartRefused(
      `${data_dir} was written by another version of Strowger (schema ${unknown}): start that version, or set ` +
        'STROWGER_DATA to an empty folder',
    )
  // The migrator inspects every table, which would double the start time.
  if (Object.keys(MIGRATIONS).every(name => executed.includes(name))) return
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
    // Migrations of different branches land in any order: a new one may sort before one that has already run.
    allowUnorderedMigrations: true,
  })
  const { error, results } = await migrator.migrateToLatest()
  if (!error) return
  const failed = results?.find(result => result.status === 'Error')
  throw new Error(`the state could not be brought up to date${failed ? ` (${failed.migrationName})` : ''}`, {
    cause: error,
  })
}

/** Lists executed migrations; none on an error. A new database has no such table; the migrator meets other errors. */
export async function executedMigrations(db: AnyDb): Promise<readonly string[]> {
  try {
    return (await db.selectFrom('kysely_migration').select('name').execute()).map(({ name }) => name)
  } catch {
    return []
  }
}
