import { CompiledQuery, DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector } from 'kysely'
import type { Db, Trx } from '../db.ts'
import type { StateEngine, Step } from '../port.ts'
import { awaitUnchanged } from '../procedures/query.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { Schema } from '../schema/index.ts'
import { Compiler } from './dialect.ts'
import type { Reply } from './link.ts'
import type { Pool } from './pool.ts'
import { ProcedureTurns } from './procedure-turns.ts'
import { runProcedure } from './run-procedure.ts'
import { rowsOfJson, withNumbers, withNumbersAfter } from './values.ts'

/** Compiles statements without a database. */
export const postgresCompiler = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new Compiler(),
  },
})

/** The engine of a PostgreSQL database and of its transactions. */
export function postgresEngine(pool: Pool, busy_timeout_ms: number): StateEngine {
  const run = async (handle: Db | Trx, sql: string, values: readonly unknown[]): Promise<Reply> => {
    const { rows, numAffectedRows = 0n } = await handle.executeQuery(CompiledQuery.raw(sql, [...values]))
    return { rows: rows as Reply['rows'], changes: Number(numAffectedRows) }
  }
  const turns = new ProcedureTurns(pool, busy_timeout_ms)
  const call = (handle: Db | Trx, name: ProcedureName, input: unknown, within_ms = busy_timeout_ms) =>
    awaitUnchanged(() =>
      handle.isTransaction
        ? inSavepoint(
            sql => run(handle, sql, []),
            () => runProcedure(name, input, (sql, values) => run(handle, sql, values)),
          )
        : turns.call(name, input, within_ms),
    )
  return {
    compiler: postgresCompiler,
    clustered: null,
    readHere: () => undefined,
    async read(handle, steps) {
      const { sql, parameters } = together(steps)
      const { rows } = handle.isTransaction
        ? await run(handle, sql, parameters)
        : await pool.use(busy_timeout_ms, link => link.run(sql, parameters))
      return steps.map((_, at) => rowsOfJson(String(rows[0]?.[`read_${at}`])))
    },
    async queueWrite(handle, { sql, parameters }) {
      await run(handle, withNumbers(sql), parameters)
    },
    async queueCall(handle, name, input) {
      await call(handle, name, input)
    },
    call,
  }
}

/** One statement for several: it has one snapshot and takes one round trip. */
function together(steps: readonly Step[]): Step {
  let count = 0
  const reads = steps.map(({ sql, parameters }, at) => {
    const read = withNumbersAfter(withNumbers(sql), count)
    count += parameters.length
    return `(select coalesce(json_agg(r), '[]'::json) from (${read}) r) as read_${at}`
  })
  return { sql: `select ${reads.join(', ')}`, parameters: steps.flatMap(({ parameters }) => parameters) }
}

/** Runs a procedure in the caller's transaction: a failure undoes its own writes only. */
async function inSavepoint<T>(run: (sql: string) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  await run('savepoint procedure')
  try {
    const value = await work()
    await run('release savepoint procedure')
    return value
  } catch (error) {
    await run('rollback to savepoint procedure; release savepoint procedure')
    throw error
  }
}
