import { type Failure, StateError } from '../port.ts'

/** Failures by the prefix of SQLite's error code. */
const FAILURES: readonly (readonly [code: RegExp, failure: Failure])[] = [
  [/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/, 'unique'],
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, 'busy'],
  [/^SQLITE_(FULL|NOMEM)/, 'full'],
  // Linux often remounts a file system read-only after a disk error.
  [/^SQLITE_(IOERR|CANTOPEN|READONLY)/, 'away'],
]

const failureOf = (code: string): Failure | null => FAILURES.find(([begin]) => begin.test(code))?.[1] ?? null

/** Builds the error for one of SQLite's codes, such as `SQLITE_FULL`. */
export const stateError = (message: string, code: string): StateError =>
  new StateError(message, { code, failure: failureOf(code) })

/** Converts an error of a procedure or a statement. Its code is `UNKNOWN` when it has none. */
export function stateErrorOf(error: unknown): StateError {
  if (error instanceof StateError) return error
  const { message, code } = error as Error & { code?: string }
  return stateError(message, code ?? 'UNKNOWN')
}

/** Reports whether SQLite failed because another connection holds a lock. */
export const isLocked = (error: unknown): boolean =>
  (error as { readonly code?: string }).code?.startsWith('SQLITE_BUSY') === true
