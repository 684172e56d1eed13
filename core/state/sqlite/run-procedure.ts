import type { Database } from 'better-sqlite3'
import { type Query, untilUnchanged, type Value } from '../procedures/admission/steps.ts'
import { PROCEDURES, type ProcedureName } from '../procedures/table.ts'
import type { Prepared } from './prepared.ts'
import { storeClock } from './store-clock.ts'

/**
 * Runs procedures to their end on this thread, each in a transaction: nobody else writes between its statements.
 * Within a transaction of the caller it is a savepoint, so that a failure leaves nothing half-written. Because the
 * transaction is exclusive, no procedure ever throws FactsChanged here.
 */
export function procedureRunner(database: Database, prepared: (sql: string) => Prepared) {
  // What rows a statement gives, whoever wrote it says.
  const rows = <R extends object>(sql: string, ...parameters: readonly Value[]): R[] => {
    const statement = prepared(sql)
    if (statement.reader) return statement.all(parameters) as R[]
    statement.run(parameters)
    return []
  }
  const query: Query = Object.assign(rows, {
    now_ms: storeClock(prepared),
    changes: (sql: string, ...parameters: readonly Value[]) => prepared(sql).run(parameters).changes,
  })
  // Made once: making the wrapper costs as much as some of the statements in it.
  const { immediate } = database.transaction((name: ProcedureName, input: unknown): unknown => {
    if (!Object.hasOwn(PROCEDURES, name)) throw new Error(`there is no procedure ${name}`)
    return PROCEDURES[name](query, input as never)
  })
  return (name: ProcedureName, input: unknown): unknown => untilUnchanged(() => immediate(name, input))
}
