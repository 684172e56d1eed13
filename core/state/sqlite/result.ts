import type { QueryResult } from 'kysely'
import type { Outcome } from './steps.ts'

/** What a step came to, as Kysely wants it; a batch or a procedure gives one row with its `result`. */
export const resultOf = <R>({ rows, result, changes, last_id }: Outcome): QueryResult<R> => ({
  rows: (result === undefined ? (rows ?? []) : [{ result }]) as R[],
  ...(changes === undefined ? {} : { numAffectedRows: BigInt(changes) }),
  ...(last_id === undefined ? {} : { insertId: BigInt(last_id) }),
})
