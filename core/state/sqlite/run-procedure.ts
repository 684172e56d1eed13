import type { Database, Statement } from 'better-sqlite3'
import { PROCEDURES } from '../admission/procedures.ts'
import type { Row } from '../admission/steps.ts'

/** Runs a procedure to its end on this thread, in a transaction: nobody else writes between its statements. */
export function runProcedure(
  database: Database,
  prepared: (sql: string) => Statement,
  name: string,
  input: unknown,
): unknown {
  const procedure = Object.hasOwn(PROCEDURES, name) ? PROCEDURES[name] : undefined
  if (!procedure) throw new Error(`there is no procedure ${name}`)
  // Within a transaction of the caller this is a savepoint, so that a failure leaves nothing half-written.
  return database
    .transaction(() =>
      procedure((sql, ...parameters) => {
        const statement = prepared(sql)
        if (statement.reader) return statement.all(...parameters) as Row[]
        statement.run(...parameters)
        return []
      }, input as never),
    )
    .immediate()
}
