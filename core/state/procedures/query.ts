import type { Tally } from './ceilings/tally.ts'

export type Value = string | number | null

export type Row = Readonly<Record<string, string | number | null>>

/** Runs one SQL statement and returns its rows. */
type Run = <R extends object = Row>(sql: string, ...parameters: readonly Value[]) => R[]

/**
 * Runs statements. A procedure is a function of a Query and its input. The thread that owns
 * the SQLite connection runs it in one transaction, in one message (decision 0002).
 */
export interface Query extends Run {
  /** Runs a statement that returns no rows. Returns the number of rows that it changed. */
  readonly changes: (sql: string, ...parameters: readonly Value[]) => number
  /**
   * Runs a statement that changes at least so many rows, unless `facts` have changed since the procedure read them: it
   * throws FactsChanged then. A store whose answers take time may throw at the end of the procedure.
   */
  readonly must: (facts: string, least: number, sql: string, ...parameters: readonly Value[]) => void
  /** Draws the position of a row to insert into a table; null: this store gives it when it inserts the row. */
  readonly position: (table: string) => number | null
  /** Reads the store's clock: epoch milliseconds that jumps of the wall clock do not affect (decision 0641). */
  readonly now_ms: () => number
  /** Counts in place of the statements of `ceilings`; null: they count. */
  readonly tally: Tally | null
  /** Draws an id. A store that runs a procedure more than once gives each run the same ids (decision 1054). */
  readonly uuid: () => string
}

/**
 * Another writer has changed the facts of a decision: a conditional statement changed no row. The engine rolls back the
 * procedure's transaction and retries it, so that it reads and decides again (decision 0641).
 */
export class FactsChanged extends Error {
  override readonly name = 'FactsChanged'
}

/** Returns `must` of a store whose statements answer at once. */
export const mustBy =
  (changes: Query['changes']): Query['must'] =>
  (facts, least, sql, ...parameters) => {
    if (changes(sql, ...parameters) < least) throw new FactsChanged(facts)
  }

const MOST_ATTEMPTS = 10

/** Retries a transaction while it throws FactsChanged. Throws the last attempt's error. */
export function untilUnchanged<Result>(attempt: () => Result): Result {
  for (let attempts = 1; ; attempts++)
    try {
      return attempt()
    } catch (error) {
      if (!(error instanceof FactsChanged) || attempts === MOST_ATTEMPTS) throw error
    }
}

/** Retries a transaction that is waited for while it throws FactsChanged. Throws the last attempt's error. */
export async function awaitUnchanged<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; ; attempts++)
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof FactsChanged) || attempts === MOST_ATTEMPTS) throw error
    }
}

/**
 * Returns a statement with a list of `count` values. The text is built once per count, because V8 would hash a new
 * string at each lookup of its prepared statement.
 */
export function sized(make: (count: number) => string): (count: number) => string {
  const made: string[] = []
  return count => {
    const known = made[count]
    if (known !== undefined) return known
    const sql = make(count)
    made[count] = sql
    return sql
  }
}

/** Returns `?, ?, ?`. */
export const marks = (count: number): string => Array(count).fill('?').join(', ')

/** Returns `(?, ?), (?, ?)` for `rows` rows of `columns` values. */
export const tuples = (rows: number, columns: number): string =>
  Array(rows)
    .fill(`(${marks(columns)})`)
    .join(', ')

const quoted = (columns: readonly string[]): string[] => columns.map(column => `"${column}"`)

/** Returns an insert of one row, with null for missing values. `also` ends the statement. */
export function inserting<Column extends string>(
  table: string,
  columns: readonly Column[],
  also = '',
): (query: Query, row: Readonly<Partial<Record<Column, Value>>>) => Row[] {
  const sql = `insert into "${table}" (${quoted(columns).join(', ')}) values (${marks(columns.length)}) ${also}`
  return (query, row) => query(sql, ...columns.map(column => row[column] ?? null))
}

/** Rows per statement of `insertingRows`. Few sizes, so that each statement is compiled once. */
const ROWS_AT_ONCE = [16, 4, 1]

/** Returns an insert of many rows, with null for missing values. One statement per row would cost more than the row. */
export function insertingRows<Column extends string>(
  table: string,
  columns: readonly Column[],
): (query: Query, rows: readonly Readonly<Partial<Record<Column, Value>>>[]) => void {
  const row = `(${marks(columns.length)})`
  const sizes = ROWS_AT_ONCE.map(size => {
    const values = Array.from({ length: size }, () => row).join(', ')
    return { size, sql: `insert into "${table}" (${quoted(columns).join(', ')}) values ${values}` }
  })
  return (query, rows) => {
    let from = 0
    for (const { size, sql } of sizes)
      for (; rows.length - from >= size; from += size)
        query(sql, ...rows.slice(from, from + size).flatMap(one => columns.map(column => one[column] ?? null)))
  }
}

/** Returns an update of the given columns. Only code names columns. The text is built once per set of them. */
export function updating(
  table: string,
  where: string,
): <R extends object = Row>(
  query: Run,
  changes: Readonly<Record<string, Value | undefined>>,
  ...keys: readonly Value[]
) => R[] {
  const made = new Map<string, string>()
  return (query, changes, ...keys) => {
    const columns = Object.keys(changes).filter(column => changes[column] !== undefined)
    if (columns.length === 0) return []
    const name = columns.join()
    const sql = made.get(name) ?? `update "${table}" set ${quoted(columns).join(' = ?, ')} = ? where ${where}`
    made.set(name, sql)
    return query(sql, ...columns.map(column => changes[column] ?? null), ...keys)
  }
}

export const textOf = (row: Row, column: string): string => String(row[column] ?? '')
export const textOrNull = (row: Row, column: string): string | null => {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}
export const numberOf = (row: Row, column: string): number => Number(row[column] ?? 0)
export const numberOrNull = (row: Row, column: string): number | null => {
  const value = row[column]
  return value === null || value === undefined ? null : Number(value)
}

/** Returns the tables that a statement reads or writes. */
export const tablesOf = (sql: string): ReadonlySet<string> =>
  new Set([...sql.matchAll(/\b(?:from|join|into|update)\s+"?(\w+)/gi)].map(match => match[1] ?? ''))
