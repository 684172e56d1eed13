import type { Database, Statement } from 'better-sqlite3'

type Value = unknown

/** A statement that SQLite has compiled. */
export interface Prepared {
  /** Returns rows, whether or not it writes. */
  readonly reader: boolean
  readonly readonly: boolean
  all(parameters: readonly unknown[]): Record<string, Value>[]
  run(parameters: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint }
}

/**
 * Compiles a statement. It builds row objects here from raw values, because better-sqlite3's own row objects cost as
 * much as reading the row.
 */
export function prepare(database: Database, sql: string): Prepared {
  const statement: Statement = database.prepare(sql)
  const { reader, readonly } = statement
  if (reader) statement.raw()
  let names: readonly string[] = []
  const rowOf = (values: Value[]): Record<string, Value> => {
    const row: Record<string, Value> = {}
    for (let at = 0; at < names.length; at += 1) row[names[at] as string] = values[at]
    return row
  }
  return {
    reader,
    readonly,
    all(parameters) {
      const found = statement.all(...parameters) as Value[][]
      const [first] = found
      if (!first) return []
      // SQLite recompiles a statement after a schema change, and `*` may then select other columns.
      if (first.length !== names.length) names = statement.columns().map(({ name }) => name)
      return found.map(rowOf)
    },
    run: parameters => statement.run(...parameters),
  }
}
