import Database, { type Statement } from 'better-sqlite3'
import { BATCH, PROCEDURE_PREFIX, type Step, type WorkerSettings } from './protocol.ts'
import { procedureRunner } from './run-procedure.ts'

const MAX_CACHED_STATEMENTS = 500

/** What a step came to; `result` of procedures and batches, rows and counts of statements. */
export interface Outcome {
  readonly rows?: unknown[]
  readonly changes?: number
  readonly last_id?: number
  readonly result?: unknown
}

/** A connection that writes, on the thread that asks for it. */
export interface Connection {
  /** Runs one step to its end. Throws what SQLite throws. */
  run(step: Step): Outcome
  begin(): void
  commit(): void
  /** Nothing, when SQLite has taken the transaction back by itself: it does when the disk is full or fails. */
  rollback(): void
  close(): void
}

/** Opens the database for writing; the text of each statement is compiled once. */
export function openConnection({ file, busy_timeout_ms }: WorkerSettings): Connection {
  const database = new Database(file, { timeout: busy_timeout_ms })
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = NORMAL')
  database.pragma('foreign_keys = ON')
  database.pragma('journal_size_limit = 67108864')

  const statements = new Map<string, Statement>()
  const prepared = (sql: string): Statement => {
    const known = statements.get(sql)
    if (known) return known
    if (statements.size >= MAX_CACHED_STATEMENTS) statements.clear()
    const statement = database.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  const runProcedure = procedureRunner(database, prepared)
  const [begin, commit, rollback] = ['begin immediate', 'commit', 'rollback'].map(sql => database.prepare(sql))
  // In one instant: nobody writes between them.
  const readTogether = database.transaction((steps: readonly Step[]) =>
    steps.map(({ sql, parameters }) => prepared(sql).all(...parameters)),
  )

  return {
    run({ sql, parameters }) {
      if (sql === BATCH) return { result: readTogether(parameters[0] as readonly Step[]) }
      if (sql.startsWith(PROCEDURE_PREFIX))
        return { result: runProcedure(sql.slice(PROCEDURE_PREFIX.length), parameters[0]) ?? null }
      const statement = prepared(sql)
      if (statement.reader) return { rows: statement.all(...parameters) }
      const { changes, lastInsertRowid } = statement.run(...parameters)
      return { rows: [], changes, last_id: Number(lastInsertRowid) }
    },
    begin: () => void begin?.run(),
    commit: () => void commit?.run(),
    rollback() {
      if (database.inTransaction) rollback?.run()
    },
    close: () => void database.close(),
  }
}
