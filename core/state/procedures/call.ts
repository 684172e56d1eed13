import { CompiledQuery } from 'kysely'
import type { Db, Trx } from '../db.ts'
import type { ProcedureCalls } from '../sqlite/procedure-calls.ts'
import { PROCEDURE_PREFIX } from '../sqlite/protocol.ts'

const callers = new WeakMap<object, ProcedureCalls>()

/** Procedures of this database that are no part of a transaction do not wait for each other. */
export const callsProceduresBy = (db: Db, calls: ProcedureCalls): void => void callers.set(db, calls)

/**
 * Runs a procedure in a transaction of its own, or in the one that `db` is. Input and result are plain data. With
 * `within_ms` its own transaction begins within this time, or not at all: it is refused as busy.
 */
export async function callProcedure<Result>(
  db: Db | Trx,
  name: string,
  input: unknown,
  within_ms?: number,
): Promise<Result> {
  const calls = callers.get(db)
  if (calls) return calls.call<Result>(name, input, within_ms)
  const { rows } = await db.executeQuery<{ readonly result: Result }>(
    CompiledQuery.raw(`${PROCEDURE_PREFIX}${name}`, [input]),
  )
  const row = rows[0]
  if (!row) throw new Error(`the procedure ${name} gave no result`)
  return row.result
}
