import type { Kysely } from 'kysely'

/** A migration sees the schema of its own time, not today's. */
// biome-ignore lint/suspicious/noExplicitAny: there is no type for a schema that was.
export type AnyDb = Kysely<any>

/** Columns by type, blanks between the names; a name that ends in `?` may be null. */
export interface Columns {
  /** Primary key, text. */
  readonly key?: string
  /** Primary key that counts up by itself. */
  readonly counted?: string
  readonly text?: string
  readonly integer?: string
  /** Primary key of several columns. */
  readonly keys?: readonly string[]
}

/** Makes a table for a migration from 0012 on; the ones before have their own copies, which have landed. */
export async function createTable(db: AnyDb, name: string, columns: Columns): Promise<void> {
  let table = db.schema.createTable(name)
  if (columns.key) table = table.addColumn(columns.key, 'text', column => column.primaryKey().notNull())
  if (columns.counted)
    table = table.addColumn(columns.counted, 'integer', column => column.primaryKey().autoIncrement())
  for (const [names, type] of [
    [columns.text, 'text'],
    [columns.integer, 'bigint'],
  ] as const)
    for (const word of names?.split(' ') ?? [])
      table = word.endsWith('?')
        ? table.addColumn(word.slice(0, -1), type)
        : table.addColumn(word, type, column => column.notNull())
  const whole = columns.keys ? table.addPrimaryKeyConstraint(`${name}_key`, [...columns.keys] as never[]) : table
  await whole.execute()
}
