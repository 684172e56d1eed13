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
