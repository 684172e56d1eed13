import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely'
import { localEngine } from './engine.ts'
import { engineDialect } from './engine-dialect.ts'
import type { LocalConnection } from './local.ts'
import { resultOf } from './result.ts'

/** A Kysely dialect that runs statements in the open transaction of this thread's connection. */
export const localSqliteDialect = (local: LocalConnection): Dialect =>
  engineDialect(localEngine(local), () => new LocalDriver(local))

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
