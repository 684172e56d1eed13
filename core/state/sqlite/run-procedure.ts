import type { Database, Statement } from 'better-sqlite3'
import { PROCEDURES } from '../admission/procedures.ts'
import type { Row, Steps } from '../admission/steps.ts'

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
  return database.transaction(() => drive(procedure(input as never), prepared)).immediate()
}

function drive(steps: Steps<unknown>, prepared: (sql: string) => Statement): unknown {
  let step = steps.next()
  while (!step.done) {
    const { sql, parameters } = step.value
    const statement = prepared(sql)
    if (statement.reader) step = steps.next(statement.all(...parameters) as Row[])
    else {
      statement.run(...parameters)
      step = steps.next([])
    }
  }
  return step.value
}
