import { type Kysely, sql } from 'kysely'
import { clusteredIn, queueWrite } from '../port.ts'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export type AnyDb = Kysely<any>

/** Columns of an index, with the condition of a partial one. */
type Index = string | readonly [columns: string, where: string]

/** A table as migrations describe it. Blanks separate the names in lists. */
interface Table {
  /** Primary key; `counted` and `numbered` keys need no column. */
  readonly key?: string
  /** An ascending integer primary key whose values are never reused. */
  readonly counted?: string
  /** An integer primary key whose values may be reused after a deletion. It saves the write of a counter. */
  readonly numbered?: string
  /** Columns in order. `:int` after a name makes it an integer instead of text; a final `?` makes it nullable. */
  readonly columns: string
  readonly defaults?: Readonly<Record<string, string>>
  /** Stores rows in primary-key order, so that reading a range touches few pages. */
  readonly clustered?: boolean
  readonly indexes?: Readonly<Record<string, Index>>
  readonly unique?: Readonly<Record<string, Index>>
}

export type Tables = Readonly<Record<string, Table>>

/** Creates tables and their indexes with one message to the state's thread. */
export async function createTables(db: AnyDb, tables: Tables): Promise<void> {
  for (const [name, table] of Object.entries(tables)) {
    await createTable(db, name, table)
    for (const [index, of] of Object.entries(table.indexes ?? {})) await createIndex(db, name, index, of, false)
    for (const [index, of] of Object.entries(table.unique ?? {})) await createIndex(db, name, index, of, true)
  }
}

async function createTable(db: AnyDb, name: string, table: Table): Promise<void> {
  const { counted, numbered, key, defaults = {} } = table
  let made = db.schema.createTable(name)
  if (counted) made = made.addColumn(counted, 'integer', column => column.primaryKey().autoIncrement())
  if (numbered) made = made.addColumn(numbered, 'integer', column => column.primaryKey())
  for (const word of table.columns.split(' ')) {
    const [, column = '', integer, nullable] = /^(\w+)(:int)?(\?)?$/.exec(word) ?? []
    if (column === '') throw new Error(`${name}: ${word} is no column`)
    const value = defaults[column]
    made = made.addColumn(column, integer ? 'bigint' : 'text', built => {
      const kept = nullable ? built : built.notNull()
      return value === undefined ? kept : kept.defaultTo(value)
    })
  }
  if (key) made = made.addPrimaryKeyConstraint(`${name}_key`, key.split(' ') as never[])
  const clustered = table.clustered ? clusteredIn(db) : null
  if (clustered) made = made.modifyEnd(clustered)
  await queueWrite(db, made)
}

async function createIndex(db: AnyDb, table: string, name: string, index: Index, unique: boolean): Promise<void> {
  const [columns, where] = typeof index === 'string' ? [index] : index
  let made = db.schema.createIndex(name).on(table).columns(columns.split(' '))
  if (unique) made = made.unique()
  await queueWrite(db, where === undefined ? made : made.where(sql.raw<boolean>(where)))
}
