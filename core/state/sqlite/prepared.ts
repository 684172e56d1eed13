import type { Database, Statement } from 'better-sqlite3'

type Value = unknown

/** A statement whose text SQLite has compiled. */
export interface Prepared {
  /** Gives rows, whether it writes or not. */
  readonly reader: boolean
  readonly readonly: boolean
  all(parameters: readonly unknown[]): Record<string, Value>[]
  run(parameters: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint }
}

/**
 * Its rows are made here, of bare values: an object that better-sqlite3 makes, name by name, costs as much as reading
 * the row does.
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
      // SQLite compiles a statement anew when the schema has changed: `*` may be other columns then.
      if (first.length !== names.length) names = statement.columns().map(({ name }) => name)
      return found.map(rowOf)
    },
    run: parameters => statement.run(...parameters),
  }
}
