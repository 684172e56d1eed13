import Database, { type Statement } from 'better-sqlite3'
import { BATCH, PROCEDURE_PREFIX, type Step, WorkCounts, type WorkerSettings } from './protocol.ts'
import { procedureRunner } from './run-procedure.ts'

const MAX_CACHED_STATEMENTS = 500
/**
 * Pages in the log before a commit writes them back into the database, which waits for the disk. Half of what the log is
 * cut to: at hundreds of calls a second SQLite's own thousand would be there several times a second.
 */
const CHECKPOINT_PAGES = 8000
/** How long a write waits for other processes after one that waited in vain. */
const IMPATIENT_MS = 500

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
  /** Runs a procedure to its end, in a transaction of its own or as a savepoint of the one that is open. */
  procedure(name: string, input: unknown): unknown
  readonly in_transaction: boolean
  begin(): void
  commit(): void
  /** Nothing, when SQLite has taken the transaction back by itself: it does when the disk is full or fails. */
  rollback(): void
  close(): void
}

/** Opens the database; the text of each statement is compiled once. */
export function openConnection(
  { file, busy_timeout_ms, reads_only }: WorkerSettings,
  counts = new WorkCounts(),
): Connection {
  const database = new Database(file, { timeout: busy_timeout_ms, readonly: reads_only })
  if (!reads_only) {
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    database.pragma('foreign_keys = ON')
    database.pragma('journal_size_limit = 67108864')
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  }

  const statements = new Map<string, Statement>()
  const prepared = (sql: string): Statement => {
    counts.ran()
    const known = statements.get(sql)
    if (known) return known
    if (statements.size >= MAX_CACHED_STATEMENTS) statements.clear()
    const statement = database.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  const waiting = patience(database, busy_timeout_ms)
  const runProcedure = procedureRunner(database, prepared)
  const procedure = (name: string, input: unknown): unknown => {
    if (database.inTransaction) return runProcedure(name, input)
    const result = waiting(() => runProcedure(name, input))
    counts.committed()
    return result
  }
  const [begin, commit, rollback] = ['begin immediate', 'commit', 'rollback'].map(sql => database.prepare(sql))
  // In one instant: nobody writes between them.
  const readTogether = database.transaction((steps: readonly Step[]) =>
    steps.map(({ sql, parameters }) => prepared(sql).all(...parameters)),
  )

  return {
    run({ sql, parameters }) {
      if (sql === BATCH) return { result: readTogether(parameters[0] as readonly Step[]) }
      if (sql.startsWith(PROCEDURE_PREFIX))
        return { result: procedure(sql.slice(PROCEDURE_PREFIX.length), parameters[0]) ?? null }
      const statement = prepared(sql)
      if (statement.reader) return { rows: statement.all(...parameters) }
      const { changes, lastInsertRowid } = statement.run(...parameters)
      if (!database.inTransaction) counts.committed()
      return { rows: [], changes, last_id: Number(lastInsertRowid) }
    },
    procedure,
    get in_transaction() {
      return database.inTransaction
    },
    begin: () => void waiting(() => begin?.run()),
    commit() {
      commit?.run()
      counts.committed()
    },
    rollback() {
      if (database.inTransaction) rollback?.run()
    },
    close: () => void database.close(),
  }
}

/**
 * Waits for other writers as long as was said; after a wait in vain only briefly, until one is not: whoever asks while
 * the database is locked for long is told so soon, and does not wait out a whole patience behind all the others.
 */
function patience(database: Database.Database, busy_timeout_ms: number): <T>(work: () => T) => T {
  let in_vain = false
  const wait = (now_in_vain: boolean): void => {
    if (in_vain === now_in_vain) return
    in_vain = now_in_vain
    database.pragma(`busy_timeout = ${in_vain ? Math.min(busy_timeout_ms, IMPATIENT_MS) : busy_timeout_ms}`)
  }
  return work => {
    try {
      const done = work()
      wait(false)
      return done
    } catch (error) {
      wait((error as { code?: string }).code?.startsWith('SQLITE_BUSY') === true)
      throw error
    }
  }
}
