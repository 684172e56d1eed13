import { CompiledQuery } from 'kysely'
import type { Db } from './index.ts'
import { PROCEDURE_PREFIX } from './sqlite/protocol.ts'

/** Runs a procedure in a transaction of its own, or in the one that `db` is. Input and result are plain data. */
export async function callProcedure<Result>(db: Db, name: string, input: unknown): Promise<Result> {
  const { rows } = await db.executeQuery<{ readonly result: Result }>(
    CompiledQuery.raw(`${PROCEDURE_PREFIX}${name}`, [input]),
  )
  const row = rows[0]
  if (!row) throw new Error(`the procedure ${name} gave no result`)
  return row.result
}
