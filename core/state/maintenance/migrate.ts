import { type Migration, Migrator } from 'kysely'
import { StartRefused } from '../../runtime/start-refused.ts'
import type { AnyDb } from '../migrations/create-tables.ts'
import { isAddition, MIGRATIONS } from '../migrations/index.ts'
import { StateError } from '../port.ts'

/** How messages name a database, and what they advise where one of a newer version is found. */
interface Wording {
  readonly name: string
  readonly instead: string
}

export type Migrations = Readonly<Record<string, Migration>>

/** Migrates the schema to this version. Concurrent processes take turns. @throws StartRefused */
export async function migrate(db: AnyDb, wording: Wording): Promise<void> {
  // The migrator inspects every table, which would double the start time.
  if ((await missingMigrations(db, wording)).length > 0) await runMigrations(db, MIGRATIONS)
}

/** Runs those of the migrations that have not run, in one transaction. Concurrent processes take turns. */
export async function runMigrations(db: AnyDb, migrations: Migrations): Promise<void> {
  // The migrator wants to know all that have run, such as additions of a newer version.
  const known = Object.fromEntries((await executedMigrations(db)).map(name => [name, { up: async () => undefined }]))
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...known, ...migrations }) },
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

/**
 * Lists the migrations of this version that have not run. With `additions` a database may have those of newer versions
 * that only add. @throws StartRefused for a schema of another version
 */
export async function missingMigrations(
  db: AnyDb,
  { name, instead }: Wording,
  {
    migrations = MIGRATIONS,
    additions = false,
  }: { readonly migrations?: Migrations; readonly additions?: boolean } = {},
): Promise<readonly string[]> {
  const executed = await executedMigrations(db)
  const unknown = executed.find(one => !Object.hasOwn(migrations, one) && !(additions && isAddition(one)))
  if (unknown !== undefined)
    throw new StartRefused(
      `${name} was written by another version of Strowger (schema ${unknown}): start that version, or ${instead}`,
    )
  return Object.keys(migrations).filter(one => !executed.includes(one))
}

/** Lists executed migrations. @throws StateError when the database cannot be read */
export async function executedMigrations(db: AnyDb): Promise<readonly string[]> {
  try {
    return (await db.selectFrom('kysely_migration').select('name').execute()).map(({ name }) => name)
  } catch (error) {
    // A new database has no such table. One that goes away meanwhile must not pass for it: anybody may migrate that.
    if (error instanceof StateError && error.failure === null) return []
    throw error
  }
}
