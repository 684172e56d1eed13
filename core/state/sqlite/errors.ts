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

/** What a procedure or a statement has thrown; `UNKNOWN` where SQLite has no part in it. */
export function stateErrorOf(error: unknown): StateError {
  const { message, code } = error as Error & { code?: string }
  return new StateError(message, code ?? 'UNKNOWN')
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof StateError && /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/.test(error.code)
