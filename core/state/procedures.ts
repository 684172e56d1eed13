import { CompiledQuery } from 'kysely'
import type { Db, Trx } from './index.ts'
import { PROCEDURE_PREFIX } from './sqlite/protocol.ts'
import type { StateThread } from './sqlite/thread.ts'

const threads = new WeakMap<object, StateThread>()

/** Procedures of this database that are no part of a transaction go to the thread without waiting for each other. */
export const runsProceduresOn = (db: Db, thread: StateThread): void => void threads.set(db, thread)

/** Runs a procedure in a transaction of its own, or in the one that `db` is. Input and result are plain data. */
export async function callProcedure<Result>(db: Db | Trx, name: string, input: unknown): Promise<Result> {
  const thread = threads.get(db)
  if (thread) return thread.procedure<Result>(name, input)
  const { rows } = await db.executeQuery<{ readonly result: Result }>(
    CompiledQuery.raw(`${PROCEDURE_PREFIX}${name}`, [input]),
  )
  const row = rows[0]
  if (!row) throw new Error(`the procedure ${name} gave no result`)
  return row.result
}
