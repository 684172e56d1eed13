import Database, { type Statement } from 'better-sqlite3'
import type { Step } from './protocol.ts'

const MAX_KEPT = 20_000

/**
 * A second connection for reads on the thread that asks (decision 0303): in WAL mode a reader waits for no writer, and a
 * read of a few rows takes less than the message to another thread. What was read is kept for exactly as long as nobody,
 * in no process, has written anything: SQLite counts that (`pragma data_version`).
 */
export interface Reader {
  /** Rows of each step, of one instant. They are shared by everybody who asks: nobody may change them. */
  read(steps: readonly Step[]): unknown[][]
  close(): void
}

export function openReader(file: string): Reader {
  const database = new Database(file, { readonly: true, fileMustExist: true })
  const version = database.prepare('pragma data_version').pluck()
  const statements = new Map<string, Statement>()
  const kept = new Map<string, unknown[]>()
  let kept_of: unknown = null

  const prepared = (sql: string): Statement => {
    const known = statements.get(sql)
    if (known) return known
    const made = database.prepare(sql)
    statements.set(sql, made)
    return made
  }
  const keyOf = ({ sql, parameters }: Step): string => `${parameters.join('\u0000')}\u0000${sql}`
  const forgetOutdated = (): void => {
    const now_of = version.get()
    if (now_of === kept_of && kept.size < MAX_KEPT) return
    kept.clear()
    kept_of = now_of
  }
  // One read transaction: the version and the rows are of the same instant.
  const readFresh = database.transaction((steps: readonly Step[]): unknown[][] => {
    forgetOutdated()
    return steps.map(step => {
      const key = keyOf(step)
      const known = kept.get(key)
      if (known) return known
      const rows = prepared(step.sql).all(...step.parameters)
      kept.set(key, rows)
      return rows
    })
  })

  return {
    read(steps) {
      forgetOutdated()
      const found: unknown[][] = []
      for (const step of steps) {
        const known = kept.get(keyOf(step))
        if (!known) return readFresh(steps)
        found.push(known)
      }
      return found
    },
    close() {
      database.close()
    },
  }
}
