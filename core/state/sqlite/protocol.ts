import type { Step } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'

/** Messages between the thread that holds the SQLite connection and the process that uses it. */
export interface WorkerSettings {
  readonly file: string
  readonly busy_timeout_ms: number
  /** For reads beside the thread that writes. */
  readonly reads_only: boolean
}

/** Work done on a connection so far. Shared memory: the thread that asked looks without asking. */
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

  /** Transactions that were begun and were not taken back. */
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
 * Steps that are run one after the other; the answer is that of the last. What can wait travels with what cannot: a
 * message to another thread and back costs more than most of the statements in it.
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
  /** JSON of what a procedure or a batch gave. */
  readonly result?: string
  readonly error?: Refused
}

/** A procedure in a transaction of its own. */
export interface ProcedureRequest {
  readonly id: number
  /** It begins before this moment of the monotonic clock, which all threads share, or not at all. */
  readonly until_ms: number
  readonly name: ProcedureName
  readonly input: unknown
}

export interface ProcedureReply {
  readonly id: number
  readonly result?: unknown
  readonly error?: Refused
}

/** An error on its way to the thread that asked. */
export interface Refused {
  readonly message: string
  readonly code: string
}

/** What a thread is started with. */
export interface ThreadData extends WorkerSettings {
  readonly counts: SharedArrayBuffer
}

/**
 * To the thread: a request of the session, or JSON of several procedures. Text, because a nested value is written and
 * read in half the time that cloning it for the other thread would take.
 */
export type ToThread = WorkerRequest | string | 'close'
/** From it: one reply of the session, or JSON of the replies of several procedures. */
export type FromThread = WorkerReply | string

/** A statement that begins so names a procedure; its one parameter is the procedure's input. */
export const PROCEDURE_PREFIX = 'procedure '

/** A statement that begins so is several; its one parameter is the list of them. */
export const BATCH = 'batch'

/**
 * A statement that begins so has no answer that anybody waits for: within a transaction it travels with the next one,
 * or with the commit.
 */
export const LATER_PREFIX = 'later '

/** So many writes at most share a commit: the first of them waits for the last. */
export const MOST_TOGETHER = 64

export const plainSql = (sql: string): string => (sql.startsWith(LATER_PREFIX) ? sql.slice(LATER_PREFIX.length) : sql)
