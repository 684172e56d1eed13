import { type Kysely, sql } from 'kysely'
import { queueWrite } from '../port.ts'
import { CLUSTERED } from '../sqlite/ddl.ts'

// biome-ignore lint/suspicious/noExplicitAny: a migration sees the schema of its own time, not today's.
export type AnyDb = Kysely<any>

/** Columns of an index, or with its condition: a row that does not meet it is not in the index. */
type Index = string | readonly [columns: string, where: string]

/** A table as migrations describe it. Lists of names are separated by blanks. */
interface Table {
  /** Primary key; `counted` and `numbered` keys need no column. */
  readonly key?: string
  /** An integer primary key that grows, and is never given twice. */
  readonly counted?: string
  /** An integer primary key that may be given again once its row is gone: spares the write of a counter. */
  readonly numbered?: string
  /** In their order; text unless `:int` follows the name, and not null unless `?` stands last. */
  readonly columns: string
  readonly defaults?: Readonly<Record<string, string>>
  /** Rows lie in the order of the primary key, so that a range of it is read from few pages. */
  readonly clustered?: boolean
  readonly indexes?: Readonly<Record<string, Index>>
  readonly unique?: Readonly<Record<string, Index>>
}

export type Tables = Readonly<Record<string, Table>>

/** Makes tables and their indexes, all with one message to the state's thread. */
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
  if (table.clustered) made = made.modifyEnd(CLUSTERED)
  await queueWrite(db, made)
}

async function createIndex(db: AnyDb, table: string, name: string, index: Index, unique: boolean): Promise<void> {
  const [columns, where] = typeof index === 'string' ? [index] : index
  let made = db.schema.createIndex(name).on(table).columns(columns.split(' '))
  if (unique) made = made.unique()
  await queueWrite(db, where === undefined ? made : made.where(sql.raw<boolean>(where)))
}
