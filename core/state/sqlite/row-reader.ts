import { join } from 'node:path'
import type { Statement } from 'better-sqlite3'
import type { RowReader } from '../port.ts'
import { compiler } from './compiler.ts'
import { stateErrorOf } from './errors.ts'
import { openConnection } from './steps.ts'
import { BUSY_TIMEOUT_MS, DATABASE_FILE } from './store.ts'
import { defineTextRules, sqliteText } from './text-rules.ts'

/** Opens a reader of the state in `data_dir`, which is migrated. It keeps `cache_kib` KiB of pages. */
export function openSqliteRows(options: { readonly data_dir: string; readonly cache_kib: number }): RowReader {
  const { data_dir, cache_kib } = options
  const file = join(data_dir, DATABASE_FILE)
  const { database } = openConnection({ file, busy_timeout_ms: BUSY_TIMEOUT_MS, reads_only: true, cache_kib })
  defineTextRules(database)
  let kept: { readonly sql: string; readonly statement: Statement } | null = null
  return {
    async lines(query) {
      const { sql, parameters } = query(compiler, sqliteText).compile()
      try {
        if (kept?.sql !== sql) kept = { sql, statement: database.prepare(joined(sql)).raw() }
        const [rows, last_position, text] = kept.statement.get(...parameters) as [number, number | null, Buffer | null]
        return { rows, last_position, text: text ?? Buffer.alloc(0) }
      } catch (error) {
        throw stateErrorOf(error)
      }
    },
    async close() {
      database.close()
    },
  }
}

/** Joins the lines of a query within SQLite. A blob becomes a buffer at the cost of one copy. */
const joined = (sql: string): string =>
  `select count(*), max(position), cast(group_concat(line, '') as blob) from (${sql})`
