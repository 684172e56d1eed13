export type Row = Readonly<Record<string, string | number | null>>

/**
 * Runs one SQL statement and gives its rows. A procedure is a function of this and its input: the thread that holds the
 * SQLite connection runs it in one transaction and one message (decision 0503).
 */
export type Query = (sql: string, ...parameters: readonly (string | number | null)[]) => Row[]

/**
 * A statement with a list of `count` values: the text is made once for each count, because a text that is made anew for
 * each call must be hashed anew to find its prepared statement.
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

/** `?, ?, ?` */
export const marks = (count: number): string => Array(count).fill('?').join(', ')

/** `(?, ?), (?, ?)` for `rows` rows of `columns` values. */
export const tuples = (rows: number, columns: number): string =>
  Array(rows)
    .fill(`(${marks(columns)})`)
    .join(', ')

export const text = (row: Row, column: string): string => String(row[column] ?? '')
export const textOrNull = (row: Row, column: string): string | null => {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}
export const number = (row: Row, column: string): number => Number(row[column] ?? 0)
export const numberOrNull = (row: Row, column: string): number | null => {
  const value = row[column]
  return value === null || value === undefined ? null : Number(value)
}

/** CLOCK_MONOTONIC, ms: the same for all processes of the machine and untouched by jumps of the wall clock. */
export const steadyNow = (): number => Number(process.hrtime.bigint() / 1_000_000n)
