import Database from 'better-sqlite3'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { Step } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { isLocked } from './errors.ts'
import { type Prepared, prepare } from './prepared.ts'
import { BATCH, PROCEDURE_PREFIX, WorkCounts, type WorkerSettings } from './protocol.ts'
import type { procedureRunner } from './run-procedure.ts'

const MAX_CACHED_STATEMENTS = 500
/**
 * The log's length in pages at which a commit writes it back, which waits for the disk. The control process does that
 * long before, so that little is left: what was written meanwhile. It fits in the log's size limit.
 */
export const CHECKPOINT_PAGES = 15_000
/** How long a write waits for other processes after an earlier wait timed out. */
const IMPATIENT_MS = 500
/**
 * SQLite polls for a lock at intervals that grow to 100 ms, and a busy process may retake the lock between two polls.
 * With this time it polls every millisecond, and we begin again: most transactions of others take no longer.
 */
const LOOKS_FOR_MS = 2

/** The outcome of a step: `result` for procedures and batches, rows and counts for statements. */
export interface Outcome {
  readonly rows?: unknown[]
  readonly changes?: number
  readonly last_id?: number
  readonly result?: unknown
}

/** A connection on the calling thread. */
export interface Connection {
  /** Runs one step to completion. Throws SQLite's errors. */
  run(step: Step): Outcome
  /**
   * Runs a procedure to completion: as a savepoint when a transaction is open, otherwise in its own transaction.
   * `until_ms` is the deadline to begin that one, on the monotonic clock.
   */
  procedure(name: ProcedureName, input: unknown, until_ms?: number): unknown
  readonly in_transaction: boolean
  readonly database: Database.Database
  begin(until_ms?: number): void
  commit(): void
  /** Does nothing when SQLite has already rolled back, as it does when the disk is full or fails. */
  rollback(): void
  /** Sets a savepoint in the open transaction. `keep` keeps the writes that follow; `undo` rolls back only those. */
  savepoint(): void
  keep(): void
  undo(): void
  close(): void
}

/** Makes what runs the procedures of a connection. */
export type Procedures = typeof procedureRunner

interface Uses {
  /** What the connection runs procedures by; they are half of the code of the state. Absent: it runs none. */
  readonly procedures?: Procedures
  readonly counts?: WorkCounts
  /** Called for each statement that writes. */
  readonly wrote?: (sql: string) => void
}

const NO_PROCEDURES: Procedures = () => name => {
  throw new Error(`this connection does not run ${name}`)
}

/** Opens the database. It caches compiled statements. */
export function openConnection(
  { file, busy_timeout_ms, reads_only, cache_kib }: WorkerSettings,
  { procedures = NO_PROCEDURES, counts = new WorkCounts(), wrote = () => undefined }: Uses = {},
): Connection {
  const database = new Database(file, { timeout: busy_timeout_ms, readonly: reads_only })
  const waiting = patience(busy_timeout_ms)
  database.pragma(`busy_timeout = ${Math.min(busy_timeout_ms, LOOKS_FOR_MS)}`)
  if (!reads_only) {
    // Of two connections that change a new database to WAL at once, SQLite refuses one without a wait.
    waiting(() => database.pragma('journal_mode = WAL'))
    database.pragma('synchronous = NORMAL')
    database.pragma('foreign_keys = ON')
    database.pragma('journal_size_limit = 67108864')
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  }
  if (cache_kib !== undefined) database.pragma(`cache_size = ${-cache_kib}`)
  // Keeps temporary tables in memory: a statement that needs one must not fail for lack of a file descriptor.
  database.pragma('temp_store = MEMORY')

  const statements = new Map<string, Prepared>()
  const prepared = (sql: string): Prepared => {
    counts.ran()
    let statement = statements.get(sql)
    if (!statement) {
      if (statements.size >= MAX_CACHED_STATEMENTS) statements.clear()
      statement = prepare(database, sql)
      statements.set(sql, statement)
    }
    if (!statement.readonly) wrote(sql)
    return statement
  }
  const runProcedure = procedures(database, prepared)
  const procedure = (name: ProcedureName, input: unknown, until_ms?: number): unknown => {
    if (database.inTransaction) return runProcedure(name, input)
    const result = waiting(() => runProcedure(name, input), until_ms)
    counts.committed()
    return result
  }
  const ready = (sql: string): (() => void) => {
    const statement = database.prepare(sql)
    return () => void statement.run()
  }
  const [begin, commit, rollback] = [ready('begin immediate'), ready('commit'), ready('rollback')]
  const [savepoint, keep, back] = [ready('savepoint one'), ready('release one'), ready('rollback to one')]
  // Runs in one transaction: all reads see one snapshot.
  const readAll = (steps: readonly Step[]): unknown[][] =>
    steps.map(({ sql, parameters }) => prepared(sql).all(parameters))
  const readTogether = database.transaction(readAll)

  const run = ({ sql, parameters }: Step): Outcome => {
    if (sql === BATCH)
      return { result: (database.inTransaction ? readAll : readTogether)(parameters[0] as readonly Step[]) }
    const statement = prepared(sql)
    if (statement.reader) return { rows: statement.all(parameters) }
    const { changes, lastInsertRowid } = statement.run(parameters)
    return { rows: [], changes, last_id: Number(lastInsertRowid) }
  }

  return {
    run(step) {
      const { sql, parameters } = step
      if (sql.startsWith(PROCEDURE_PREFIX))
        return { result: procedure(sql.slice(PROCEDURE_PREFIX.length) as ProcedureName, parameters[0]) ?? null }
      if (database.inTransaction) return run(step)
      const outcome = waiting(() => run(step))
      if (outcome.changes !== undefined) counts.committed()
      return outcome
    },
    procedure,
    database,
    get in_transaction() {
      return database.inTransaction
    },
    begin: until_ms => waiting(begin, until_ms),
    commit() {
      commit()
      counts.committed()
    },
    rollback() {
      if (database.inTransaction) rollback()
    },
    savepoint,
    keep,
    undo() {
      back()
      keep()
    },
    close: () => void database.close(),
  }
}

/**
 * Retries work while the database is locked, for `busy_timeout_ms` but never past `until_ms`. After a timeout it waits
 * only IMPATIENT_MS until work succeeds again: during a long lock callers fail soon, and each does not wait the full
 * timeout behind all the others.
 */
export function patience(
  busy_timeout_ms: number,
  clock: Pick<Clock, 'monotonic_ms'> = systemClock,
): <T>(work: () => T, until_ms?: number) => T {
  let in_vain = false
  return (work, given_up_ms = Number.POSITIVE_INFINITY) => {
    const patience_ms = in_vain ? Math.min(busy_timeout_ms, IMPATIENT_MS) : busy_timeout_ms
    const until_ms = Math.min(clock.monotonic_ms() + patience_ms, given_up_ms)
    for (;;)
      try {
        const done = work()
        in_vain = false
        return done
      } catch (error) {
        const busy = isLocked(error)
        if (busy && clock.monotonic_ms() < until_ms) continue
        in_vain = busy
        throw error
      }
  }
}
