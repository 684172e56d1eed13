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
import { type Connection, type Outcome, openConnection } from './steps.ts'
import { Turns } from './turns.ts'

/** Somebody else writes at this moment: nothing was begun. */
export class WriterBusy extends Error {
  override readonly name = 'WriterBusy'
}

/**
 * A connection on the thread that asks (decision 0304), for write transactions of a few statements, one after the
 * other. It never waits for another writer.
 */
export class LocalWriter {
  readonly #connection: Connection
  readonly #committed: () => void
  readonly #turns = new Turns()

  /** `committed` is called after each commit. */
  constructor(file: string, committed: () => void) {
    this.#connection = openConnection({ file, busy_timeout_ms: 0, reads_only: false })
    this.#committed = committed
    // The state's thread writes the log back into the database: that waits for the disk.
    this.run({ sql: 'pragma wal_autocheckpoint = 0', parameters: [] })
  }

  /** A statement of the transaction that is open. @throws StateError */
  run({ sql, parameters }: Step): Outcome {
    return this.#attempt(connection => connection.run({ sql: plainSql(sql), parameters }))
  }

  /** All that `work` runs, or nothing of it. @throws WriterBusy */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.#turns.take()
    try {
      this.#begin()
      return await this.#within(work)
    } finally {
      this.#turns.letGo()
    }
  }

  close(): void {
    this.#attempt(connection => connection.close())
  }

  #begin(): void {
    try {
      this.#attempt(connection => connection.begin())
    } catch (error) {
      if (error instanceof StateError && error.code.startsWith('SQLITE_BUSY')) throw new WriterBusy()
      throw error
    }
  }

  async #within<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await work()
      this.#attempt(connection => connection.commit())
      this.#committed()
      return done
    } catch (error) {
      this.#attempt(connection => connection.rollback())
      throw error
    }
  }

  /** What SQLite throws, as the state's own error. */
  #attempt<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connection)
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      throw code === undefined ? error : new StateError(message, code)
    }
  }
}

/** Kysely whose statements are run by a LocalWriter, in the transaction that is open there. */
export const localSqliteDialect = (writer: LocalWriter): Dialect => ({
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new LocalDriver(writer),
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

const NOT_HERE = 'transactions are those of the writer'

class LocalDriver implements Driver {
  readonly #connection: LocalConnection

  constructor(writer: LocalWriter) {
    this.#connection = new LocalConnection(writer)
  }

  async init(): Promise<void> {
    // The writer has the database open already.
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
    // The writer is closed by its owner.
  }
}

class LocalConnection implements DatabaseConnection {
  readonly #writer: LocalWriter

  constructor(writer: LocalWriter) {
    this.#writer = writer
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return resultOf(this.#writer.run(query))
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }
}
