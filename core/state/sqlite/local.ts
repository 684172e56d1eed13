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
import type { Engine, EngineAdapter, Reader, Step } from '../port.ts'
import { localEngine } from './engine.ts'
import { isLocked, stateErrorOf } from './errors.ts'
import { MOST_TOGETHER, plainSql, WorkCounts } from './protocol.ts'
import { createReader, type LocalReader, tablesOf } from './reader.ts'
import { resultOf } from './result.ts'
import { type Connection, type Outcome, openConnection } from './steps.ts'

/** A short transaction that waits to run. */
interface Brief {
  readonly work: () => Promise<unknown>
  readonly resolve: (done: { readonly value: unknown } | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * A connection on the calling thread (decision 0002), for reads of a few rows and writes of a few statements.
 * Concurrent writes share a commit. It never waits for another writer.
 */
export class LocalConnection {
  readonly counts = new WorkCounts()
  readonly #connection: Connection
  readonly #reader: LocalReader
  readonly #committed: (writes: number) => void
  readonly #waiting: Brief[] = []
  /** A transaction is open, or begins at the end of this turn of the event loop. */
  #busy = false
  #open = false
  /** Tables that the running short transaction has written. */
  readonly #wrote = new Set<string>()
  /** Tables that earlier short transactions have written in the open transaction. */
  readonly #wrote_before = new Set<string>()
  readonly #tables = new Map<string, ReadonlySet<string>>()

  /** Calls `committed` after each commit with the number of short transactions in it. */
  constructor(file: string, committed: (writes: number) => void) {
    this.#connection = openConnection({ file, busy_timeout_ms: 0, reads_only: false }, this.counts, sql =>
      this.#note(sql),
    )
    this.#reader = createReader(this.#connection.database)
    this.#committed = committed
    // The state's thread checkpoints the log, because that waits for the disk.
    this.#connection.database.pragma('wal_autocheckpoint = 0')
  }

  /** For reads outside a transaction; null while one is open, because its writes may yet be rolled back. */
  get reader(): Reader | null {
    return this.#open ? null : this.#reader
  }

  /** For reads within the running short transaction; null once it has written something. */
  get reader_within(): Reader | null {
    return this.#wrote.size === 0 ? this.#reader : null
  }

  /** Runs a statement in the open transaction. @throws StateError */
  run({ sql, parameters }: Step): Outcome {
    return this.#guarded(connection => connection.run({ sql: plainSql(sql), parameters }))
  }

  /**
   * Runs `work` atomically and resolves once it is committed. Resolves to null, with nothing begun, when another
   * connection holds the write lock.
   */
  attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as Brief['resolve'], reject })
      this.#next()
    })
  }

  close(): void {
    this.#guarded(connection => connection.close())
  }

  /** Begins at the end of this turn of the event loop, so that all work that arrives in it shares the commit. */
  #next(): void {
    if (this.#busy || this.#waiting.length === 0) return
    this.#busy = true
    setImmediate(async () => {
      await this.#together(this.#waiting.splice(0, MOST_TOGETHER))
      this.#busy = false
      this.#next()
    })
  }

  async #together(briefs: readonly Brief[]): Promise<void> {
    try {
      if (!this.#begin()) {
        for (const { resolve } of briefs) resolve(null)
        return
      }
      for (const tell of await this.#within(briefs)) tell()
    } catch (error) {
      for (const { reject } of briefs) reject(error)
    }
  }

  #begin(): boolean {
    try {
      this.#guarded(connection => connection.begin())
    } catch (error) {
      if (isLocked(error)) return false
      throw error
    }
    this.#open = true
    this.#reader.begun()
    return true
  }

  /** Runs all and commits. Returns the callbacks that settle each; throws when nothing was committed. */
  async #within(briefs: readonly Brief[]): Promise<(() => void)[]> {
    try {
      const outcomes: (() => void)[] = []
      for (const brief of briefs) outcomes.push(await this.#alone(brief))
      this.#guarded(connection => connection.commit())
      this.#committed(briefs.length)
      return outcomes
    } catch (error) {
      this.#guarded(connection => connection.rollback())
      // Later transactions may have cached rows that earlier ones wrote.
      this.#reader.written(this.#wrote_before)
      throw error
    } finally {
      this.#open = false
      this.#wrote_before.clear()
    }
  }

  /** Runs one in a savepoint, so that a failure rolls back only its own writes. */
  async #alone({ work, resolve, reject }: Brief): Promise<() => void> {
    this.#guarded(connection => connection.savepoint())
    try {
      const value = await work()
      this.#guarded(connection => connection.keep())
      this.#reader.written(this.#wrote)
      for (const table of this.#wrote) this.#wrote_before.add(table)
      return () => resolve({ value })
    } catch (error) {
      // On a full disk SQLite may roll back the whole transaction, not only the savepoint.
      if (!this.#connection.in_transaction) throw error
      this.#guarded(connection => connection.undo())
      return () => reject(error)
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

  /** Converts SQLite's errors to StateError. */
  #guarded<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connection)
    } catch (error) {
      throw (error as { readonly code?: string }).code === undefined ? error : stateErrorOf(error)
    }
  }
}

/** A Kysely dialect that runs statements in the open transaction of this thread's connection. */
export const localSqliteDialect = (local: LocalConnection): Dialect => ({
  createAdapter: () => new LocalAdapter(localEngine(local)),
  createDriver: () => new LocalDriver(local),
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

class LocalAdapter extends SqliteAdapter implements EngineAdapter {
  readonly engine: Engine

  constructor(engine: Engine) {
    super()
    this.engine = engine
  }
}

const NOT_HERE = 'transactions are those of the connection'

class LocalDriver implements Driver {
  readonly #connection: KyselyConnection

  constructor(local: LocalConnection) {
    this.#connection = new KyselyConnection(local)
  }

  async init(): Promise<void> {
    // The database is already open.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    // There is one connection. It belongs to the open transaction.
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
    // The owner closes the connection.
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
