import { Worker } from 'node:worker_threads'
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
import {
  LATER_PREFIX,
  plainSql,
  type Step,
  type WorkerReply,
  type WorkerRequest,
  type WorkerSettings,
} from './protocol.ts'
import { resultOf } from './result.ts'
import { Turns } from './turns.ts'

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
  readonly #turns = new Turns()

  constructor(settings: WorkerSettings) {
    this.#settings = settings
  }

  async init(): Promise<void> {
    this.#connection = new WorkerConnection(this.#settings)
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#turns.take()
    if (!this.#connection) throw new Error('the state is closed')
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#turns.letGo()
  }

  // IMMEDIATE: a transaction that first reads and then writes must not find its snapshot outdated by another process.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    own(connection).begin()
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await own(connection).commit()
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await own(connection).rollback()
  }

  async destroy(): Promise<void> {
    await this.#connection?.close()
    this.#connection = undefined
  }
}

function own(connection: DatabaseConnection): WorkerConnection {
  if (!(connection instanceof WorkerConnection)) throw new Error('this connection is of another dialect')
  return connection
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
  /** An answer that comes while we close must not let the process go before the thread has ended. */
  #closing = false
  #transaction: 'wanted' | 'begun' | null = null
  /** Statements of the transaction that travel with the next one. */
  readonly #later: Step[] = []

  constructor(settings: WorkerSettings) {
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: settings })
    this.#worker.on('message', (reply: WorkerReply) => {
      this.#waiting.get(reply.id)?.resolve(reply)
      this.#waiting.delete(reply.id)
      if (this.#waiting.size === 0 && !this.#closing) this.#worker.unref()
    })
    this.#worker.on('error', error => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new StateError('the state is closed', 'CLOSED')))
    this.#worker.unref()
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const step = { sql: plainSql(sql), parameters }
    if (sql.startsWith(LATER_PREFIX) && this.#transaction !== null) {
      this.#later.push(step)
      return { rows: [] }
    }
    const { result, ...plain } = await this.#send([...this.#later.splice(0), step], null)
    return resultOf<R>({ ...plain, ...(result === undefined ? {} : { result: JSON.parse(result) }) })
  }

  /** The transaction begins with its first statement: until then it holds up nobody. */
  begin(): void {
    this.#transaction = 'wanted'
  }

  async commit(): Promise<void> {
    const steps = this.#later.splice(0)
    if (this.#transaction === 'begun' || steps.length > 0) await this.#send(steps, 'commit')
    this.#transaction = null
  }

  async rollback(): Promise<void> {
    this.#later.length = 0
    const begun = this.#transaction === 'begun'
    this.#transaction = null
    if (begun) await this.#send([], 'rollback')
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }

  async close(): Promise<void> {
    const ended = new Promise<void>(resolve => this.#worker.once('exit', () => resolve()))
    this.#closing = true
    this.#worker.ref()
    this.#worker.postMessage('close')
    await ended
  }

  async #send(steps: readonly Step[], end: WorkerRequest['end']): Promise<WorkerReply> {
    const begin = this.#transaction === 'wanted'
    // Even when the answer is an error: what began must be taken back.
    if (begin) this.#transaction = 'begun'
    const reply = await this.#ask({ id: this.#next++, begin, steps, end })
    if (reply.error) throw new StateError(reply.error.message, reply.error.code)
    return reply
  }

  #ask(request: WorkerRequest): Promise<WorkerReply> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.id, { resolve, reject })
      this.#worker.ref()
      this.#worker.postMessage(request)
    })
  }

  #fail(error: Error): void {
    this.#failure = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
