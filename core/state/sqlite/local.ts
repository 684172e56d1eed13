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
import { createReader, type Reader, tablesOf } from './reader.ts'
import { resultOf } from './result.ts'
import { type Connection, type Outcome, openConnection } from './steps.ts'
import { Turns } from './turns.ts'

/**
 * A connection on the thread that asks, for reads of a few rows (decision 0303) and for write transactions of a few
 * statements, one after the other (decision 0304). It never waits for another writer.
 */
export class LocalConnection {
  readonly #connection: Connection
  readonly #reader: Reader
  readonly #committed: () => void
  readonly #turns = new Turns()
  /** Tables that the open transaction has written. */
  readonly #wrote = new Set<string>()
  readonly #tables = new Map<string, ReadonlySet<string>>()

  /** `committed` is called after each commit. */
  constructor(file: string, committed: () => void) {
    this.#connection = openConnection({ file, busy_timeout_ms: 0, reads_only: false }, undefined, sql =>
      this.#note(sql),
    )
    this.#reader = createReader(this.#connection.database)
    this.#committed = committed
    // The state's thread writes the log back into the database: that waits for the disk.
    this.#connection.database.pragma('wal_autocheckpoint = 0')
  }

  /** For reads outside of a transaction; null while one is open, whose writes may yet be taken back. */
  get reader(): Reader | null {
    return this.#connection.in_transaction ? null : this.#reader
  }

  /** For reads of the transaction that is open; null once it has written. */
  get reader_within(): Reader | null {
    return this.#wrote.size === 0 ? this.#reader : null
  }

  /** A statement of the transaction that is open. @throws StateError */
  run({ sql, parameters }: Step): Outcome {
    return this.#guarded(connection => connection.run({ sql: plainSql(sql), parameters }))
  }

  /** Runs all of `work` in a transaction, or nothing of it; null when somebody else writes: nothing was begun. */
  async attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | null> {
    await this.#turns.take()
    try {
      return this.#begin() ? { value: await this.#within(work) } : null
    } finally {
      this.#turns.letGo()
    }
  }

  close(): void {
    this.#guarded(connection => connection.close())
  }

  #begin(): boolean {
    try {
      this.#guarded(connection => connection.begin())
    } catch (error) {
      if (error instanceof StateError && error.code.startsWith('SQLITE_BUSY')) return false
      throw error
    }
    this.#reader.begun()
    return true
  }

  async #within<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await work()
      this.#guarded(connection => connection.commit())
      this.#reader.written(this.#wrote)
      this.#committed()
      return done
    } catch (error) {
      this.#guarded(connection => connection.rollback())
      throw error
    } finally {
      this.#wrote.clear()
    }
  }

  #note(sql: string): void {
    let tables = this.#tables.get(sql)
    if (!tables) {
      tables = tablesOf(sql)
      this.#tables.set(sql, tables)
    }
    for (const table of tables) this.#wrote.add(table)
  }

  /** What SQLite throws, as the state's own error. */
  #guarded<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connection)
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      throw code === undefined ? error : new StateError(message, code)
    }
  }
}

/** Kysely whose statements are run by a connection of this thread, in the transaction that is open there. */
export const localSqliteDialect = (local: LocalConnection): Dialect => ({
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new LocalDriver(local),
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

const NOT_HERE = 'transactions are those of the connection'

class LocalDriver implements Driver {
  readonly #connection: KyselyConnection

  constructor(local: LocalConnection) {
    this.#connection = new KyselyConnection(local)
  }

  async init(): Promise<void> {
    // The database is open already.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    // There is one connection, and whoever has the transaction has it.
  }

  async beginTransaction(): Promise<void> {
    throw new Error(NOT_HERE)
  }

  async commitTransaction(): Promise<void> {
    throw new Error(NOT_HERE)
  }

  async rollbackTransaction(): Promise<void> {
    throw new Error(NOT_HERE)
  }

  async destroy(): Promise<void> {
    // The connection is closed by its owner.
  }
}

class KyselyConnection implements DatabaseConnection {
  readonly #local: LocalConnection

  constructor(local: LocalConnection) {
    this.#local = local
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return resultOf(this.#local.run(query))
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }
}
