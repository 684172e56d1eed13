import { join } from 'node:path'
import type { Statement } from 'better-sqlite3'
import type { RowReader } from '../port.ts'
import type { Value } from '../procedures/query.ts'
import { compiler } from './compiler.ts'
import { stateErrorOf } from './errors.ts'
import { openConnection } from './steps.ts'
import { BUSY_TIMEOUT_MS, DATABASE_FILE } from './store.ts'

/** Opens a reader of the state in `data_dir`, which is migrated. It keeps `cache_kib` KiB of pages. */
export function openSqliteRows(options: { readonly data_dir: string; readonly cache_kib: number }): RowReader {
  const { data_dir, cache_kib } = options
  const file = join(data_dir, DATABASE_FILE)
  const { database } = openConnection({ file, busy_timeout_ms: BUSY_TIMEOUT_MS, reads_only: true, cache_kib })
  let kept: { readonly sql: string; readonly statement: Statement } | null = null
  return {
    async rows(query) {
      const { sql, parameters } = query(compiler).compile()
      try {
        if (kept?.sql !== sql) kept = { sql, statement: database.prepare(sql).raw() }
        return kept.statement.all(...parameters) as Value[][]
      } catch (error) {
        throw stateErrorOf(error)
      }
    },
    async close() {
      database.close()
    },
  }
}
