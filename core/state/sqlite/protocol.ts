/** Messages between the thread that holds the SQLite connection and the process that uses it. */
export interface WorkerSettings {
  readonly file: string
  readonly busy_timeout_ms: number
}

export interface Step {
  readonly sql: string
  readonly parameters: readonly unknown[]
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
  readonly error?: { readonly message: string; readonly code: string }
}

/**
 * A statement that begins so names a procedure (core/state/procedures.ts); its one parameter is the procedure's
 * input.
 */
export const PROCEDURE_PREFIX = 'procedure '

/** A statement that begins so is several; its one parameter is the list of them (core/state/batch.ts). */
export const BATCH = 'batch'

/**
 * A statement that begins so has no answer that anybody waits for: within a transaction it travels with the next one,
 * or with the commit.
 */
export const LATER_PREFIX = 'later '

export const plainSql = (sql: string): string => (sql.startsWith(LATER_PREFIX) ? sql.slice(LATER_PREFIX.length) : sql)
