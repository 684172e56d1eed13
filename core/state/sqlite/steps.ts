import Database from 'better-sqlite3'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { Step } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { isLocked } from './errors.ts'
import { type Prepared, prepare } from './prepared.ts'
import { BATCH, PROCEDURE_PREFIX, WorkCounts, type WorkerSettings } from './protocol.ts'
import { procedureRunner } from './run-procedure.ts'

const MAX_CACHED_STATEMENTS = 500
/**
 * Pages in the log before a commit writes them back into the database, which waits for the disk. Half of what the log
 * is cut to: at hundreds of calls a second SQLite's own thousand would be there several times a second.
 */
export const CHECKPOINT_PAGES = 8000
/** How long a write waits for other processes after one that waited in vain. */
const IMPATIENT_MS = 500
/**
 * SQLite itself waits for a lock in steps that grow to 100 ms, and a busy process may have taken it again each time it
 * looks: asked anew after so long, its steps stay short.
 */
const LOOKS_FOR_MS = 20

/** What a step came to; `result` of procedures and batches, rows and counts of statements. */
export interface Outcome {
  readonly rows?: unknown[]
  readonly changes?: number
  readonly last_id?: number
  readonly result?: unknown
}

/** A connection on the thread that asks for it. */
export interface Connection {
  /** Runs one step to its end. Throws what SQLite throws. */
  run(step: Step): Outcome
  /**
   * Runs a procedure to its end, in a transaction of its own, which begins before `until_ms` of the monotonic clock, or
   * as a savepoint of the one that is open.
   */
  procedure(name: ProcedureName, input: unknown, until_ms?: number): unknown
  readonly in_transaction: boolean
  readonly database: Database.Database
  begin(until_ms?: number): void
  commit(): void
  /** Nothing, when SQLite has taken the transaction back by itself: it does when the disk is full or fails. */
  rollback(): void
  /** Marks where the open transaction stands: what follows is kept, or undone alone. */
  savepoint(): void
  keep(): void
  undo(): void
  close(): void
}

/** Opens the database; the text of each statement is compiled once. `wrote` hears of each statement that writes. */
export function openConnection(
  { file, busy_timeout_ms, reads_only }: WorkerSettings,
  counts = new WorkCounts(),
  wrote: (sql: string) => void = () => undefined,
): Connection {
  const database = new Database(file, { timeout: busy_timeout_ms, readonly: reads_only })
  if (!reads_only) {
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    database.pragma('foreign_keys = ON')
    database.pragma('journal_size_limit = 67108864')
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  }
  // Statements that need a place of their own for a moment must not fail for want of a file descriptor.
  database.pragma('temp_store = MEMORY')
  database.pragma(`busy_timeout = ${Math.min(busy_timeout_ms, LOOKS_FOR_MS)}`)

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
  const waiting = patience(busy_timeout_ms)
  const runProcedure = procedureRunner(database, prepared)
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
  // In one instant: nobody writes between them.
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
 * Waits for other writers as long as was said; after a wait in vain only briefly, until one is not: whoever asks while
 * the database is locked for long is told so soon, and does not wait out a whole patience behind all the others. It
 * waits until `until_ms` at most.
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
