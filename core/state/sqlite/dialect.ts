import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely'
import { systemClock, type Timer } from '../../runtime/clock.ts'
import type { StateEngine, Step } from '../port.ts'
import { engineDialect } from './engine-dialect.ts'
import { BATCH, LATER_PREFIX, plainSql, type WorkerReply, type WorkerRequest } from './protocol.ts'
import { resultOf } from './result.ts'
import type { StateThread } from './thread.ts'
import { Turns } from './turns.ts'

interface Settings {
  readonly engine: StateEngine
  readonly writing: StateThread
  /** Starts a second thread, for reads that would wait (decision 0002). Null: such reads wait. */
  readonly readThread: (() => StateThread) | null
  /** Runs after a possible write outside a transaction; resolves once it may be acknowledged. Null: none writes. */
  readonly wrote: (() => Promise<void>) | null
}

/**
 * A Kysely dialect for better-sqlite3 in a worker thread (decision 0002). One connection writes: statements queue for
 * it, and a transaction has it exclusively.
 */
export const workerSqliteDialect = (settings: Settings): Dialect =>
  engineDialect(settings.engine, () => new WorkerDriver(settings))

class WorkerDriver implements Driver {
  readonly #threads: Threads

  constructor(settings: Settings) {
    this.#threads = new Threads(settings)
  }

  async init(): Promise<void> {
    // The thread has already opened the database.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return new WorkerConnection(this.#threads)
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    own(connection).release()
  }

  // IMMEDIATE takes the write lock first. Otherwise another process could outdate the snapshot of a transaction that
  // reads before it writes.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await own(connection).begin()
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await own(connection).commit()
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await own(connection).rollback()
  }

  async destroy(): Promise<void> {
    await this.#threads.close()
  }
}

function own(connection: DatabaseConnection): WorkerConnection {
  if (!(connection instanceof WorkerConnection)) throw new Error('this connection is of another dialect')
  return connection
}

/** A read waits this long for its turn before the reading thread starts. Most reads and writes take a millisecond. */
const READS_WAIT_MS = 50
/** The reading thread holds 7 MB. After this time without a read that needs it, it ends. */
const UNNEEDED_MS = 30_000

/** The writing thread, whose users take turns, and the reading thread, which runs while reads would wait for long. */
class Threads {
  readonly writing: StateThread
  readonly #turns = new Turns()
  /** Users of the writing thread that write, and those that wait to. */
  #writers = 0
  readonly #readThread: Settings['readThread']
  readonly #wrote: Settings['wrote']
  #reading: StateThread | undefined
  #idle: Timer | undefined
  /** Resolves when the reading threads before have ended. */
  #ended: Promise<void> = Promise.resolve()

  constructor({ writing, readThread, wrote }: Settings) {
    this.writing = writing
    this.#readThread = readThread
    this.#wrote = wrote
  }

  /** Runs one statement outside any transaction. */
  async run(step: Step, reads: boolean): Promise<WorkerReply> {
    const request = { begin: false, steps: [step], end: null } as const
    if (reads) return await this.#read(request)
    await this.takeToWrite()
    let reply: WorkerReply
    try {
      reply = await this.writing.run(request)
    } finally {
      this.letGo()
    }
    await this.#wrote?.()
    return reply
  }

  /** Takes the writing thread for a write or a transaction. */
  async takeToWrite(): Promise<void> {
    this.#writers += 1
    await this.#turns.take()
  }

  letGo(): void {
    this.#writers -= 1
    this.#turns.letGo()
  }

  async #read(request: Omit<WorkerRequest, 'id'>): Promise<WorkerReply> {
    const around = await this.#around()
    if (around) return await around.run(request)
    try {
      return await this.writing.run(request)
    } finally {
      this.#turns.letGo()
    }
  }

  /** Returns the reading thread for a read that would wait on the writing one; null when it has its turn there. */
  async #around(): Promise<StateThread | null> {
    const start = this.#readThread
    if (!start) {
      await this.#turns.take()
      return null
    }
    if (this.#writers > 0 && this.#reading) return this.#reading
    if (await this.#turns.takeWithin(READS_WAIT_MS)) return null
    this.#reading ??= start()
    this.#endUnneeded(this.#reading)
    return this.#reading
  }

  #endUnneeded(reading: StateThread): void {
    this.#idle?.cancel()
    this.#idle = systemClock.after(UNNEEDED_MS, () => {
      if (reading.busy) return this.#endUnneeded(reading)
      this.#reading = undefined
      const before = this.#ended
      this.#ended = reading.close().then(() => before)
    })
  }

  async close(): Promise<void> {
    this.#idle?.cancel()
    await Promise.all([this.writing.close(), this.#reading?.close(), this.#ended])
  }
}

/** Runs single statements, or a transaction, which has the writing thread exclusively. */
class WorkerConnection implements DatabaseConnection {
  readonly #threads: Threads
  #transaction: 'wanted' | 'begun' | null = null
  #has_turn = false
  /** Queued statements of the transaction. They travel with its next statement or its commit. */
  readonly #later: Step[] = []

  constructor(threads: Threads) {
    this.#threads = threads
  }

  async executeQuery<R>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<R>> {
    const step = { sql: plainSql(sql), parameters }
    if (this.#transaction === null) {
      const reads = query.kind === 'SelectQueryNode' || sql === BATCH
      return replied(await this.#threads.run(step, reads))
    }
    if (sql.startsWith(LATER_PREFIX)) {
      this.#later.push(step)
      return { rows: [] }
    }
    return replied(await this.#send([...this.#later.splice(0), step], null))
  }

  /** Waits for the writing thread. BEGIN goes with the first statement: other processes can write until then. */
  async begin(): Promise<void> {
    await this.#threads.takeToWrite()
    this.#has_turn = true
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

  release(): void {
    if (this.#has_turn) this.#threads.letGo()
    this.#has_turn = false
  }

  // biome-ignore lint/correctness/useYield: Kysely's interface asks for a generator; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming queries are not supported')
  }

  #send(steps: readonly Step[], end: WorkerRequest['end']): Promise<WorkerReply> {
    const begin = this.#transaction === 'wanted'
    // Set even if the reply is an error: the thread may have begun the transaction, and a rollback must follow.
    if (begin) this.#transaction = 'begun'
    return this.#threads.writing.run({ begin, steps, end })
  }
}

const replied = <R>({ result, ...plain }: WorkerReply): QueryResult<R> =>
  resultOf<R>({ ...plain, ...(result === undefined ? {} : { result: JSON.parse(result) }) })
