import { join } from 'node:path'
import Database from 'better-sqlite3'
import { StartRefused } from '../../runtime/start-refused.ts'
import type { AllRows, TableShape } from '../port.ts'
import type { Value } from '../procedures/query.ts'
import { DATABASE_FILE } from './database-file.ts'
import { isLocked } from './errors.ts'

/**
 * Opens all rows of the database in `data_dir` as they are now. Until `close` nobody else writes to it.
 * @throws StartRefused when another connection writes
 */
export function openAllRows(data_dir: string): AllRows {
  const database = new Database(join(data_dir, DATABASE_FILE), { fileMustExist: true, timeout: 0 })
  try {
    // Two connections cannot hold this, and readers are not disturbed.
    database.exec('begin immediate')
  } catch (error) {
    database.close()
    if (isLocked(error)) throw new StartRefused(`${data_dir} is in use: stop what uses it`)
    throw error
  }
  return {
    tables: tablesOf(database).map(name => shapeOf(database, name)),
    *rows({ name, columns, key }) {
      const order = key.map(quoted).join(', ')
      const all = database.prepare(`select ${columns.map(quoted).join(', ')} from ${quoted(name)} order by ${order}`)
      for (const values of all.raw().iterate() as Iterable<Value[]>) {
        const odd = values.findIndex(value => !isPlain(value))
        if (odd >= 0) throw new StartRefused(`${name}.${columns[odd]} has a value that is no text and no whole number`)
        yield values
      }
    },
    close() {
      database.exec('rollback')
      database.close()
    },
  }
}

const quoted = (name: string): string => `"${name}"`

/** Whole numbers beyond 2^53 come rounded, which makes them no safe integers. */
const isPlain = (value: unknown): boolean => value === null || typeof value === 'string' || Number.isSafeInteger(value)

function tablesOf(database: Database.Database): string[] {
  const names = database.prepare(
    `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' and name not like 'kysely%'
     order by name`,
  )
  return names.pluck().all() as string[]
}

function shapeOf(database: Database.Database, name: string): TableShape {
  const columns = database.pragma(`table_info(${quoted(name)})`) as { readonly name: string; readonly pk: number }[]
  const key = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  const counted = database.prepare('select seq from sqlite_sequence where name = ?').pluck().get(name)
  return {
    name,
    columns: columns.map(column => column.name),
    key: key.map(column => column.name),
    last_number: counted === undefined ? null : Number(counted),
  }
}
