import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { StateError } from './errors.ts'
import { plainSql, type Step } from './protocol.ts'
import { resultOf } from './result.ts'
import { type Connection, openConnection } from './steps.ts'
import { Turns } from './turns.ts'

/** Somebody else writes at this moment: nothing was begun. */
export class WriterBusy extends Error {
  override readonly name = 'WriterBusy'
}

interface Settings {
  readonly file: string
  /** Called after each commit. */
  readonly committed: () => void
}

/**
 * Kysely on better-sqlite3 on the thread that asks (decision 0304), for write transactions of a few statements. It
 * never waits for another writer: `beginTransaction` then throws WriterBusy.
 */
export const localSqliteDialect = (settings: Settings): Dialect => ({
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new LocalDriver(settings),
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

class LocalDriver implements Driver {
  readonly #settings: Settings
  readonly #turns = new Turns()
  #connection: LocalConnection | undefined

  constructor(settings: Settings) {
    this.#settings = settings
  }

  async init(): Promise<void> {
    const { file } = this.#settings
    this.#connection = new LocalConnection(openConnection({ file, busy_timeout_ms: 0, reads_only: false }))
    // The state's thread writes the log back into the database: that waits for the disk.
    this.#connection.execute({ sql: 'pragma wal_autocheckpoint = 0', parameters: [] })
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#turns.take()
    return this.#own
  }

  async releaseConnection(): Promise<void> {
    this.#turns.letGo()
  }

  async beginTransaction(): Promise<void> {
    try {
      this.#own.attempt(connection => connection.begin())
    } catch (error) {
      if (error instanceof StateError && error.code.startsWith('SQLITE_BUSY')) throw new WriterBusy()
      throw error
    }
  }

  async commitTransaction(): Promise<void> {
    this.#own.attempt(connection => connection.commit())
    this.#settings.committed()
  }

  async rollbackTransaction(): Promise<void> {
    this.#own.attempt(connection => connection.rollback())
  }

  async destroy(): Promise<void> {
    this.#connection?.attempt(connection => connection.close())
    this.#connection = undefined
  }

  get #own(): LocalConnection {
    if (!this.#connection) throw new Error('the state is closed')
    return this.#connection
  }
}

class LocalConnection implements DatabaseConnection {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.execute<R>(query)
  }

  execute<R>({ sql, parameters }: Step): QueryResult<R> {
    return resultOf(this.attempt(connection => connection.run({ sql: plainSql(sql), parameters })))
  }

  /** What SQLite throws, as the state's own error. */
  attempt<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connection)
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      throw code === undefined ? error : new StateError(message, code)
    }
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }
}
