import type { Database } from 'better-sqlite3'
import { newId } from '../../runtime/ids.ts'
import { mustBy, type Query, untilUnchanged, type Value } from '../procedures/query.ts'
import { PROCEDURES, type ProcedureName } from '../procedures/table.ts'
import type { Prepared } from './prepared.ts'
import { storeClock } from './store-clock.ts'

/**
 * Returns a function that runs procedures to completion on this thread, each in an exclusive transaction. Inside the
 * caller's transaction a procedure is a savepoint: a failure rolls back its writes. Nothing else can write between its
 * statements, so no procedure throws FactsChanged here.
 */
export function procedureRunner(database: Database, prepared: (sql: string) => Prepared) {
  // The author of a statement asserts the type of its rows.
  const rows = <R extends object>(sql: string, ...parameters: readonly Value[]): R[] => {
    const statement = prepared(sql)
    if (statement.reader) return statement.all(parameters) as R[]
    statement.run(parameters)
    return []
  }
  const changes = (sql: string, ...parameters: readonly Value[]) => prepared(sql).run(parameters).changes
  const query: Query = Object.assign(rows, {
    now_ms: storeClock(prepared),
    uuid: newId.uuid,
    changes,
    must: mustBy(changes),
    position: () => null,
    tally: null,
  })
  // Created once: creating the wrapper costs as much as some of its statements.
  const { immediate } = database.transaction((name: ProcedureName, input: unknown): unknown => {
    if (!Object.hasOwn(PROCEDURES, name)) throw new Error(`there is no procedure ${name}`)
    return PROCEDURES[name](query, input as never)
  })
  return (name: ProcedureName, input: unknown): unknown => untilUnchanged(() => immediate(name, input))
}
