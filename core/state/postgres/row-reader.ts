import type { RowReader } from '../port.ts'
import { postgresCompiler } from './engine.ts'
import { poolOf } from './store.ts'

/** How long a read waits for a connection. */
const CONNECTION_MS = 5000

/** Opens a reader of the state in a PostgreSQL database, which is migrated. It has one connection. */
export function openPostgresRows(database_url: string): RowReader {
  const pool = poolOf(database_url, { size: 1 })
  return {
    rows(query) {
      const { sql, parameters } = query(postgresCompiler).compile()
      return pool.use(CONNECTION_MS, link => link.rows(sql, parameters))
    },
    close: () => pool.close(),
  }
}
