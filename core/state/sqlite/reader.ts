import type { Database } from 'better-sqlite3'
import type { Reader, Step } from '../port.ts'
import { tablesOf } from '../procedures/query.ts'
import { type Prepared, prepare } from './prepared.ts'

const MAX_KEPT = 20_000

/**
 * Reads on the calling thread (decision 0002) through the connection of its short transactions: reading a few rows is
 * faster than a message to another thread. It caches rows until another connection in any process has written anything
 * (`pragma data_version` changes), or this connection has written to one of their tables.
 */
export interface LocalReader extends Reader {
  /** Called when a transaction begins here: others may have written before, and cannot write until it ends. */
  begun(): void
  /** Called when this connection has written to these tables. */
  written(tables: Iterable<string>): void
}

interface Derived {
  readonly tables: ReadonlySet<string>
  readonly values: Map<string, unknown>
}

interface Kept {
  readonly statement: Prepared
  readonly tables: ReadonlySet<string>
  /** Rows by the statement's values. */
  readonly rows: Map<string, unknown[]>
}

export function createReader(database: Database): LocalReader {
  const version = database.prepare('pragma data_version').pluck()
  const statements = new Map<string, Kept>()
  const derivations = new Map<object, Derived>()
  /** All caches, by each table that they were read from. */
  const readFrom = new Map<string, Map<string, unknown>[]>()
  /** Tables read so far by the derived value that is being computed. */
  let noted: Set<string> | null = null
  let kept = 0
  let looked = false
  let kept_of: unknown = null

  const dropsWith = (values: Map<string, unknown>, tables: ReadonlySet<string>): void => {
    for (const table of tables) readFrom.set(table, [...(readFrom.get(table) ?? []), values])
  }
  const keptOf = (sql: string): Kept => {
    const known = statements.get(sql)
    if (known) return known
    const made = { statement: prepare(database, sql), tables: tablesOf(sql), rows: new Map() }
    statements.set(sql, made)
    dropsWith(made.rows, made.tables)
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
    for (const { values } of derivations.values()) values.clear()
    kept = 0
    kept_of = now_of
  }
  // Checks once per callback of the event loop: a write made elsewhere meanwhile has not been acknowledged before it.
  const lookAgain = (): void => {
    looked = false
  }
  const look = (): void => {
    if (looked) return
    looked = true
    process.nextTick(lookAgain)
    check()
  }
  const readAll = (steps: readonly Step[]): unknown[][] =>
    steps.map(step => {
      const { statement, rows } = keptOf(step.sql)
      const key = keyOf(step)
      const known = rows.get(key)
      if (known) return known
      const found = statement.all(step.parameters)
      rows.set(key, found)
      kept += 1
      return found
    })
  // Reads the version and the rows in one read transaction, from the same snapshot.
  const afresh = database.transaction((work: () => unknown) => {
    check()
    return work()
  })
  const note = (tables: ReadonlySet<string>): void => {
    if (noted) for (const table of tables) noted.add(table)
  }

  return {
    read(steps) {
      look()
      const found: unknown[][] = []
      for (const step of steps) {
        const { rows, tables } = keptOf(step.sql)
        note(tables)
        const known = rows.get(keyOf(step))
        if (known) found.push(known)
      }
      if (found.length === steps.length) return found
      return database.inTransaction ? readAll(steps) : (afresh(() => readAll(steps)) as unknown[][])
    },
    derived<T>(of: object, key: string, make: () => T): T {
      look()
      const known = derivations.get(of)
      if (known) note(known.tables)
      if (known?.values.has(key)) return known.values.get(key) as T
      const outer = noted
      // A derived value reads the same tables every time.
      const tables = known ? null : new Set<string>()
      noted = tables
      let made: T
      try {
        made = database.inTransaction ? make() : (afresh(make) as T)
      } finally {
        noted = outer
      }
      const derived = known ?? { tables: tables ?? new Set(), values: new Map<string, unknown>() }
      if (!known) {
        derivations.set(of, derived)
        dropsWith(derived.values, derived.tables)
        note(derived.tables)
      }
      derived.values.set(key, made)
      kept += 1
      return made
    },
    begun: lookAgain,
    written(tables) {
      for (const table of tables) for (const values of readFrom.get(table) ?? []) if (values.size > 0) values.clear()
    },
  }
}
