/** Messages between the thread that holds the SQLite connection and the process that uses it. */
export interface WorkerSettings {
  readonly file: string
  readonly busy_timeout_ms: number
}

export interface WorkerRequest {
  readonly id: number
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export interface WorkerReply {
  readonly id: number
  readonly rows?: unknown[]
  readonly changes?: number
  readonly last_id?: number
  readonly error?: { readonly message: string; readonly code: string }
}

/**
 * A statement that begins so names a procedure (core/state/procedures.ts); its one parameter is the procedure's
 * input.
 */
export const PROCEDURE_PREFIX = 'procedure '
