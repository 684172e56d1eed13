import type { Step } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'

/** Messages between the thread that holds the SQLite connection and the process that uses it. */
export interface WorkerSettings {
  readonly file: string
  readonly busy_timeout_ms: number
  /** For reads concurrent with the writing thread. */
  readonly reads_only: boolean
  /** Pages that the connection keeps, in KiB; 2,000 unless given. */
  readonly cache_kib?: number | undefined
}

/** Counts of a connection's work, in shared memory: another thread reads them without a message. */
export class WorkCounts {
  readonly shared: SharedArrayBuffer
  readonly #counts: Float64Array

  constructor(shared = new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)) {
    this.shared = shared
    this.#counts = new Float64Array(shared)
  }

  get statements(): number {
    return this.#counts[0] ?? 0
  }

  /** Committed transactions. */
  get commits(): number {
    return this.#counts[1] ?? 0
  }

  ran(): void {
    this.#counts[0] = this.statements + 1
  }

  committed(): void {
    this.#counts[1] = this.commits + 1
  }
}

/**
 * Steps that run in order; the reply holds the result of the last. Queued writes travel with the next awaited
 * statement, because a round trip to another thread costs more than most statements.
 */
export interface WorkerRequest {
  readonly id: number
  /** Begins a write transaction before the first step. */
  readonly begin: boolean
  readonly steps: readonly Step[]
  /** Ends the transaction after the last step. */
  readonly end: 'commit' | 'rollback' | null
}

export interface WorkerReply {
  readonly id: number
  readonly rows?: unknown[]
  readonly changes?: number
  readonly last_id?: number
  /** JSON of the result of a procedure or a batch. */
  readonly result?: string
  readonly error?: WorkerError
}

/** A procedure to run in its own transaction. */
export interface ProcedureRequest {
  readonly id: number
  /** Deadline to begin, on the monotonic clock, which all threads share. */
  readonly until_ms: number
  readonly name: ProcedureName
  readonly input: unknown
}

export interface ProcedureReply {
  readonly id: number
  readonly result?: unknown
  readonly error?: WorkerError
}

/** An error in a reply to the calling thread. */
export interface WorkerError {
  readonly message: string
  readonly code: string
}

/** A thread's start parameters. */
export interface ThreadData extends WorkerSettings {
  readonly counts: SharedArrayBuffer
}

/**
 * A message to the thread: a request of the session, or several procedures as JSON. JSON takes half the time of a
 * structured clone for nested values.
 */
export type ToThread = WorkerRequest | string | 'close'
/** A message from the thread: one reply of the session, or the replies of several procedures as JSON. */
export type FromThread = WorkerReply | string

/** Prefix of a pseudo-statement that runs a procedure. Its one parameter is the procedure's input. */
export const PROCEDURE_PREFIX = 'procedure '

/** A pseudo-statement that runs several statements. Its one parameter is their list. */
export const BATCH = 'batch'

/**
 * Prefix of a statement whose result is not awaited. Within a transaction it travels with the next statement or the
 * commit.
 */
export const LATER_PREFIX = 'later '

/** The most writes that share a commit, because the first waits for the last. */
export const MOST_TOGETHER = 64

export const plainSql = (sql: string): string => (sql.startsWith(LATER_PREFIX) ? sql.slice(LATER_PREFIX.length) : sql)
