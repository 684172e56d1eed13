import type { Database } from 'better-sqlite3'
import type { Query, Row } from '../procedures/admission/steps.ts'
import { PROCEDURES } from '../procedures/table.ts'
import type { Prepared } from './prepared.ts'

/**
 * Runs procedures to their end on this thread, each in a transaction: nobody else writes between its statements.
 * Within a transaction of the caller it is a savepoint, so that a failure leaves nothing half-written.
 */
export function procedureRunner(database: Database, prepared: (sql: string) => Prepared) {
  const query: Query = (sql, ...parameters) => {
    const statement = prepared(sql)
    if (statement.reader) return statement.all(parameters) as Row[]
    statement.run(parameters)
    return []
  }
  // Made once: making the wrapper costs as much as some of the statements in it.
  const { immediate } = database.transaction((name: string, input: unknown): unknown => {
    const procedure = Object.hasOwn(PROCEDURES, name) ? PROCEDURES[name] : undefined
    if (!procedure) throw new Error(`there is no procedure ${name}`)
    return procedure(query, input as never)
  })
  return immediate
}
