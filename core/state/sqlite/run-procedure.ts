import type { Database } from 'better-sqlite3'
import { type Query, type Row, untilUnchanged, type Value } from '../procedures/admission/steps.ts'
import { PROCEDURES } from '../procedures/table.ts'
import type { Prepared } from './prepared.ts'
import { storeClock } from './store-clock.ts'

/**
 * Runs procedures to their end on this thread, each in a transaction: nobody else writes between its statements.
 * Within a transaction of the caller it is a savepoint, so that a failure leaves nothing half-written. Because the
 * transaction is exclusive, no procedure ever throws FactsChanged here.
 */
export function procedureRunner(database: Database, prepared: (sql: string) => Prepared) {
  const rows = (sql: string, ...parameters: readonly Value[]): Row[] => {
    const statement = prepared(sql)
    if (statement.reader) return statement.all(parameters) as Row[]
    statement.run(parameters)
    return []
  }
  const query: Query = Object.assign(rows, {
    now_ms: storeClock(prepared),
    changes: (sql: string, ...parameters: readonly Value[]) => prepared(sql).run(parameters).changes,
  })
  // Made once: making the wrapper costs as much as some of the statements in it.
  const { immediate } = database.transaction((name: string, input: unknown): unknown => {
    const procedure = Object.hasOwn(PROCEDURES, name) ? PROCEDURES[name] : undefined
    if (!procedure) throw new Error(`there is no procedure ${name}`)
    return procedure(query, input as never)
  })
  return (name: string, input: unknown): unknown => untilUnchanged(() => immediate(name, input))
}
