import type { BusBridge } from '../runtime/bus.ts'
import type { Config } from '../runtime/config.ts'
import type { Log } from '../runtime/log.ts'
import type { RateStore } from '../runtime/rate-store.ts'
import { redisPrefix } from '../runtime/secrets.ts'
import type { RowReader, State } from './port.ts'
import type { Migrates } from './postgres/shared-schema.ts'
import type { TakenTable } from './postgres/take-over.ts'
import { openAllRows } from './sqlite/all-rows.ts'
import { openSqliteRows } from './sqlite/row-reader.ts'
import { openSqlite, type SqliteOpening } from './sqlite/store.ts'

export type { Db, NewRow, Trx } from './db.ts'
export {
  type Failure,
  failure,
  isPassing,
  type RowReader,
  type State,
  StateError,
  type StateWork,
  type TextRule,
} from './port.ts'
export type { Value } from './procedures/query.ts'
export * from './schema/index.ts'
export { DATABASE_FILE } from './sqlite/database-file.ts'
export { missingMigration } from './sqlite/older.ts'
export { keepDatabase, setBackDatabase } from './sqlite/set-back.ts'
export { damageOf, isDatabase } from './sqlite/soundness.ts'

interface Opening extends SqliteOpening {
  /** A database of PostgreSQL in place of the one in the folder. */
  readonly database_url?: string | null
  /** Who may bring an older schema of PostgreSQL to this version; by default nobody. That of SQLite always is. */
  readonly migrates?: Migrates
}

/** Opens the state of an installation, whose schema is of this version then. @throws StateError, StartRefused */
export async function openState(options: Opening): Promise<State> {
  const { database_url } = options
  if (!database_url) return openSqlite(options)
  // The driver is loaded where it is used.
  const { openPostgres } = await import('./postgres/store.ts')
  return openPostgres({ ...options, database_url })
}

/**
 * Opens a reader of the state of an installation, which is migrated. That of SQLite keeps `cache_kib` KiB of pages, and
 * lets checkpoints go first by the `reads_wait` of the process.
 */
export async function openRowReader(options: {
  readonly data_dir: string
  readonly database_url?: string | null | undefined
  readonly cache_kib: number
  readonly reads_wait?: SharedArrayBuffer
}): Promise<RowReader> {
  const { database_url } = options
  if (!database_url) return openSqliteRows(options)
  const { openPostgresRows } = await import('./postgres/row-reader.ts')
  return openPostgresRows(database_url)
}

/** Reports whether a database of PostgreSQL has no tables. @throws StateError */
export async function isEmptyDatabase(database_url: string): Promise<boolean> {
  const { isEmpty } = await import('./postgres/store.ts')
  return isEmpty(database_url)
}

/**
 * Copies all rows of the SQLite database in `data_dir` into an empty database of PostgreSQL, and compares them. Nobody
 * writes to the one meanwhile; the other is as before unless all went well. `told` hears of each table that is there.
 * @throws StartRefused, StateError
 */
export async function copyToPostgres(options: {
  readonly data_dir: string
  readonly database_url: string
  readonly onTable: (table: TakenTable) => void
}): Promise<readonly TakenTable[]> {
  const { data_dir, database_url, onTable: told } = options
  const [{ openPostgres, isEmpty }, { takeOver }] = await Promise.all([
    import('./postgres/store.ts'),
    import('./postgres/take-over.ts'),
  ])
  const source = openAllRows(data_dir)
  try {
    // Tables of other programs are left alone; ours without rows are those of an attempt that broke off.
    const migrates = (await isEmpty(database_url)) ? 'anybody' : 'nobody'
    await (await openPostgres({ database_url, migrates })).close()
    return await takeOver(database_url, source, told)
  } finally {
    source.close()
  }
}

/** What machines that share a database talk by. */
type Shared = Pick<Config, 'database_url' | 'redis_url' | 'master_key'>

/**
 * Opens the way of rings between machines that share a database: Redis when there is one. Null: no database is shared.
 * @throws StartRefused
 */
export async function openBridge(shared: Shared, log: Log): Promise<BusBridge | null> {
  const { database_url, redis_url, master_key } = shared
  if (database_url === null) return null
  if (redis_url !== null) {
    const { RedisRings } = await import('../runtime/redis/rings.ts')
    return new RedisRings({ url: redis_url, prefix: redisPrefix(master_key), log })
  }
  const { openRings } = await import('./postgres/store.ts')
  return openRings(database_url, log)
}

/**
 * Opens what counts requests for all machines that share a database: Redis when there is one, and the database while it
 * is away. A count that takes longer than `within_ms` fails. Null: no database is shared. @throws StartRefused
 */
export async function openRates(shared: Shared, log: Log, within_ms?: number): Promise<RateStore | null> {
  const { database_url, redis_url, master_key } = shared
  if (database_url === null) return null
  const { PostgresRates } = await import('./postgres/rates.ts')
  const rates = new PostgresRates(database_url, within_ms)
  if (redis_url === null) return rates
  const { RedisRates } = await import('../runtime/redis/rates.ts')
  const first = new RedisRates({ url: redis_url, prefix: redisPrefix(master_key), log, within_ms })
  return {
    draw: asks => first.draw(asks).catch(() => rates.draw(asks)),
    prune: () => rates.prune(),
    close: async () => {
      await Promise.all([first.close(), rates.close()])
    },
  }
}
