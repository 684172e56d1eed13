import { Worker } from 'node:worker_threads'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { WorkerReply, WorkerSettings } from './protocol.ts'

/**
 * A statement that SQLite refused; `code` is SQLite's, such as `SQLITE_CONSTRAINT_UNIQUE`, `SQLITE_BUSY`,
 * `SQLITE_FULL`.
 */
export class StateError extends Error {
  override readonly name = 'StateError'
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof StateError && /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/.test(error.code)

/**
 * Kysely on better-sqlite3 in a worker thread (decision 0002). One connection: statements queue, transactions
 * exclude.
 */
export const workerSqliteDialect = (settings: WorkerSettings): Dialect => ({
  createAdapter: () => new TransactionalAdapter(),
  createDriver: () => new WorkerDriver(settings),
  createIntrospector: db => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

// SQLite's DDL is transactional, and BEGIN IMMEDIATE makes two processes that migrate at once take turns.
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

class WorkerDriver implements Driver {
  readonly #settings: WorkerSettings
  #connection: WorkerConnection | undefined
  #tail: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined

  constructor(settings: WorkerSettings) {
    this.#settings = settings
  }

  async init(): Promise<void> {
    this.#connection = new WorkerConnection(this.#settings)
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const turn = this.#tail
    let release = (): void => undefined
    this.#tail = new Promise(resolve => {
      release = resolve
    })
    await turn
    this.#release = release
    if (!this.#connection) throw new Error('the state is closed')
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#release?.()
  }

  // IMMEDIATE: a transaction that first reads and then writes must not find its snapshot outdated by another process.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async destroy(): Promise<void> {
    await this.#connection?.close()
    this.#connection = undefined
  }
}

interface Waiting {
  readonly resolve: (reply: WorkerReply) => void
  readonly reject: (error: Error) => void
}

class WorkerConnection implements DatabaseConnection {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #next = 1
  #failure: Error | undefined

  constructor(settings: WorkerSettings) {
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: settings })
    this.#worker.on('message', (reply: WorkerReply) => {
      this.#waiting.get(reply.id)?.resolve(reply)
      this.#waiting.delete(reply.id)
      if (this.#waiting.size === 0) this.#worker.unref()
    })
    this.#worker.on('error', error => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new StateError('the state is closed', 'CLOSED')))
    this.#worker.unref()
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const reply = await this.#ask(query)
    if (reply.error) throw new StateError(reply.error.message, reply.error.code)
    return {
      rows: (reply.rows ?? []) as R[],
      ...(reply.changes === undefined ? {} : { numAffectedRows: BigInt(reply.changes) }),
      ...(reply.last_id === undefined ? {} : { insertId: BigInt(reply.last_id) }),
    }
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }

  async close(): Promise<void> {
    const ended = new Promise<void>(resolve => this.#worker.once('exit', () => resolve()))
    this.#worker.ref()
    this.#worker.postMessage('close')
    await ended
  }

  #ask(query: CompiledQuery): Promise<WorkerReply> {
    if (this.#failure) return Promise.reject(this.#failure)
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#worker.ref()
      this.#worker.postMessage({ id, sql: query.sql, parameters: query.parameters })
    })
  }

  #fail(error: Error): void {
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
