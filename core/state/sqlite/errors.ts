import { type Failure, StateError } from '../port.ts'

/** By how SQLite's code begins. */
const FAILURES: readonly (readonly [code: RegExp, failure: Failure])[] = [
  [/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/, 'unique'],
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, 'busy'],
  [/^SQLITE_(FULL|NOMEM)/, 'full'],
  // A file system that was mounted for reading alone is one that lost its disk, most of the time.
  [/^SQLITE_(IOERR|CANTOPEN|READONLY)/, 'away'],
]

const failureOf = (code: string): Failure | null => FAILURES.find(([begin]) => begin.test(code))?.[1] ?? null

/** The error for one of SQLite's codes, such as `SQLITE_FULL`. */
export const stateError = (message: string, code: string): StateError =>
  new StateError(message, { code, failure: failureOf(code) })

export const closedError = (): StateError =>
  new StateError('the state is closed', { code: 'CLOSED', failure: 'closed' })

/** What a procedure or a statement has thrown; its code is `UNKNOWN` where SQLite has no part in it. */
export function stateErrorOf(error: unknown): StateError {
  if (error instanceof StateError) return error
  const { message, code } = error as Error & { code?: string }
  return stateError(message, code ?? 'UNKNOWN')
}

/** Whether SQLite says that somebody else holds a lock. */
export const isLocked = (error: unknown): boolean =>
  (error as { readonly code?: string }).code?.startsWith('SQLITE_BUSY') === true
