import type { QueryResult } from 'kysely'
import type { Outcome } from './steps.ts'

/** Converts a step's outcome to a Kysely result. A batch or a procedure yields one row with its `result`. */
export const resultOf = <R>({ rows, result, changes, last_id }: Outcome): QueryResult<R> => ({
  rows: (result === undefined ? (rows ?? []) : [{ result }]) as R[],
  ...(changes === undefined ? {} : { numAffectedRows: BigInt(changes) }),
  ...(last_id === undefined ? {} : { insertId: BigInt(last_id) }),
})
