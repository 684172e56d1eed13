import { compiledForRanges } from '../maintenance/row-ranges.ts'
import type { RowReader } from '../port.ts'
import { postgresCompiler } from './engine.ts'
import { poolOf } from './store.ts'
import { postgresText } from './text-rules.ts'

/** How long a read waits for a connection. */
const CONNECTION_MS = 5000

/** Opens a reader of the state in a PostgreSQL database, which is migrated. It has one connection. */
export function openPostgresRows(database_url: string): RowReader {
  const pool = poolOf(database_url, { size: 1 })
  return {
    lines(query) {
      const { sql, valuesOf } = compiledForRanges(range => query(postgresCompiler, postgresText, range))
      return async range => {
        const [[rows = 0, last_position = null, text = null] = []] = await pool.use(CONNECTION_MS, link =>
          link.rows(joined(sql), valuesOf(range)),
        )
        return {
          rows: Number(rows),
          last_position: last_position as number | null,
          text: Buffer.from(String(text ?? '')),
        }
      }
    },
    written: () => false,
    close: () => pool.close(),
  }
}

/** Joins the lines of a query within PostgreSQL. */
const joined = (sql: string): string =>
  `select count(*), max(position), string_agg(line, '' order by position) from (${sql}) as lines`
