import { type Failure, StateError } from '../port.ts'

/** Failures by SQLSTATE (PostgreSQL, appendix A) or by the code of a socket's error. */
const FAILURES: readonly (readonly [code: RegExp, failure: Failure])[] = [
  [/^23505$/, 'unique'],
  // A lock or a statement took too long, two writers waited for each other, no connection is left, or a migration has
  // changed a table since a statement was prepared.
  [/^(55P03|57014|40001|40P01|53300|0A000)$/, 'busy'],
  [/^53[12]00$/, 'full'],
  // The connection, its end by an administrator or a crash, a server that is now a standby, and an unreadable file.
  [/^(08\w{3}|57P0\d|25006|25P0[34]|58030)$/, 'away'],
  [/^(CONNECTION|EPIPE|ETIMEDOUT|ECONN\w+|EHOST\w+|ENET\w+|ENOTFOUND|EAI_AGAIN|ENOENT)$/, 'away'],
]

/** Messages of the driver's own errors, which have no code: the server did not answer, or the connection is gone. */
const NO_ANSWER = /^(Connection terminated|timeout expired|Query read timeout|Client (has encountered|was closed))/

interface DriverError {
  readonly message: string
  readonly code?: string
  /** Set by the server. */
  readonly severity?: string
}

/** Converts an error of the driver. The server's detail stays out of the message, because it quotes values. */
export function postgresError(error: unknown): StateError {
  if (error instanceof StateError) return error
  const { message, code = NO_ANSWER.test(message) ? 'CONNECTION' : 'UNKNOWN' } = error as DriverError
  return new StateError(message, { code, failure: FAILURES.find(([known]) => known.test(code))?.[1] ?? null })
}

/**
 * Reports whether the connection may be used again: the server refused a statement, and nothing else happened. Prepared
 * statements of a changed table would be refused for ever.
 */
export const leavesConnection = (error: unknown): boolean => {
  const { severity, code } = error as DriverError
  return severity === 'ERROR' && code !== '0A000'
}

/** What an operator should do about a server that lets nobody in, by the code or the message of its error. */
const REMEDIES: readonly (readonly [error: RegExp, remedy: string])[] = [
  [/^28P01 /, 'look at the user and the password in STROWGER_DATABASE_URL'],
  [/^\S+ SASL: .*password must be a/, 'it wants a password: write it into STROWGER_DATABASE_URL, user:password@'],
  [/^28000 /, 'make the user (createuser), or let it in from this machine (pg_hba.conf)'],
  [/^3D000 /, 'make the database: createdb -E UTF8 -T template0'],
  [/^ECONNREFUSED /, 'start PostgreSQL there, have it listen at that address, or mend host and port'],
  [/^(ENOTFOUND|EAI_AGAIN) /, 'mend the name of the host'],
]

/** Returns the message of a server that cannot be used, with what to do about it. */
export function withRemedy(error: unknown): string {
  const { message, code } = error as DriverError
  const remedy = REMEDIES.find(([known]) => known.test(`${code} ${message}`))?.[1]
  return remedy === undefined ? message : `${message}; ${remedy}`
}
