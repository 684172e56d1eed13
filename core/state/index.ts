import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, Migrator, type Transaction } from 'kysely'
import { readHere } from './batch.ts'
import { MIGRATIONS } from './migrations/index.ts'
import type { Schema } from './schema/index.ts'
import { workerSqliteDialect } from './sqlite/dialect.ts'
import { openReader } from './sqlite/reader.ts'

/** The database, or a transaction on it: what every repository function takes as its first argument. */
export type Db = Kysely<Schema>
export type Trx = Transaction<Schema>

export interface State {
  readonly db: Db
  /**
   * Runs `work` in one write transaction. Inside, use `trx` alone: a statement through `db` would wait for the
   * transaction that waits for it.
   */
  transaction<T>(work: (trx: Trx) => Promise<T>): Promise<T>
  /** Throws when the database cannot be written. */
  probe(): Promise<void>
  close(): Promise<void>
}

const BUSY_TIMEOUT_MS = 5000

/**
 * Opens the state below `data_dir`, bringing the schema up to this version first. Any number of processes may do so
 * at once.
 */
export async function openState(options: {
  readonly data_dir: string
  /** Makes hot reads on the thread that asks. Not for signaling: its event loop must not wait for a disk. */
  readonly reads_here?: boolean
}): Promise<State> {
  mkdirSync(options.data_dir, { recursive: true })
  const file = join(options.data_dir, 'strowger.sqlite')
  const db = new Kysely<Schema>({ dialect: workerSqliteDialect({ file, busy_timeout_ms: BUSY_TIMEOUT_MS }) })
  try {
    await migrate(db)
  } catch (error) {
    await db.destroy()
    throw error
  }
  const reader = options.reads_here ? openReader(file) : null
  if (reader) readHere(db, reader)
  return {
    db,
    transaction: work => db.transaction().execute(work),
    async probe() {
      await db.updateTable('configuration').set({ id: 1 }).where('id', '=', 1).execute()
    },
    async close() {
      reader?.close()
      await db.destroy()
    },
  }
}

async function migrate(db: Db): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } })
  const { error, results } = await migrator.migrateToLatest()
  if (!error) return
  const failed = results?.find(result => result.status === 'Error')
  throw new Error(`the state could not be brought up to date${failed ? ` (${failed.migrationName})` : ''}`, {
    cause: error,
  })
}

export * from './schema/index.ts'
export { isUniqueViolation, StateError } from './sqlite/dialect.ts'
