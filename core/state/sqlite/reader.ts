import Database, { type Statement } from 'better-sqlite3'
import type { Step } from './protocol.ts'

const MAX_KEPT = 20_000

/**
 * A second connection for reads on the thread that asks (decision 0303): in WAL mode a reader waits for no writer, and
 * a read of a few rows takes less than the message to another thread. What was read is kept for exactly as long as
 * nobody, in no process, has written anything: SQLite counts that (`pragma data_version`).
 */
export interface Reader {
  /** Rows of each step, of one instant. They are shared by everybody who asks: nobody may change them. */
  read(steps: readonly Step[]): unknown[][]
  /** What `make` makes of reads, kept for as long as they are and shared like them; `of` and `key` name it. */
  derived<T>(of: object, key: string, make: () => T): T
  /** To be called when this thread has written by another connection: what comes next sees it. */
  written(): void
  close(): void
}

interface Kept {
  readonly statement: Statement
  /** Rows by the statement's values. */
  readonly rows: Map<string, unknown[]>
}

export function openReader(file: string): Reader {
  const database = new Database(file, { readonly: true, fileMustExist: true })
  const version = database.prepare('pragma data_version').pluck()
  const statements = new Map<string, Kept>()
  const derivations = new Map<object, Map<string, unknown>>()
  let kept = 0
  let looked = false
  let kept_of: unknown = null

  const keptOf = (sql: string): Kept => {
    const known = statements.get(sql)
    if (known) return known
    const made = { statement: database.prepare(sql), rows: new Map() }
    statements.set(sql, made)
    return made
  }
  const keyOf = ({ parameters }: Step): string => {
    const [only] = parameters
    return parameters.length === 1 && typeof only === 'string' ? `=${only}` : JSON.stringify(parameters)
  }
  const check = (): void => {
    const now_of = version.get()
    if (now_of === kept_of && kept < MAX_KEPT) return
    for (const { rows } of statements.values()) rows.clear()
    derivations.clear()
    kept = 0
    kept_of = now_of
  }
  // Once for all that follows from one event: what another process writes meanwhile was answered to nobody yet.
  const lookAgain = (): void => {
    looked = false
  }
  const look = (): void => {
    if (looked) return
    looked = true
    process.nextTick(lookAgain)
    check()
  }
  // One read transaction: the version and the rows are of the same instant.
  const readFresh = database.transaction((steps: readonly Step[]): unknown[][] => {
    check()
    return steps.map(step => {
      const { statement, rows } = keptOf(step.sql)
      const key = keyOf(step)
      const known = rows.get(key)
      if (known) return known
      const found = statement.all(...step.parameters)
      rows.set(key, found)
      kept += 1
      return found
    })
  })

  return {
    read(steps) {
      look()
      const found: unknown[][] = []
      for (const step of steps) {
        const known = keptOf(step.sql).rows.get(keyOf(step))
        if (!known) return readFresh(steps)
        found.push(known)
      }
      return found
    },
    derived<T>(of: object, key: string, make: () => T): T {
      look()
      const known = derivations.get(of)
      if (known?.has(key)) return known.get(key) as T
      const made = make()
      // Looked up again: making it may have shown that everything was outdated.
      const values = derivations.get(of) ?? new Map<string, unknown>()
      derivations.set(of, values.set(key, made))
      kept += 1
      return made
    },
    written: lookAgain,
    close() {
      database.close()
    },
  }
}
