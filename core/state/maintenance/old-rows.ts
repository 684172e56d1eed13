import { type RawBuilder, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { State } from '../index.ts'
import { writeInParts } from './parts.ts'

/** A table whose numbers ascend with the time of its rows. */
interface Table {
  readonly name: 'lease' | 'media_quality' | 'outbox' | 'webhook_delivery'
  readonly number: 'id' | 'position'
  /** The column of the time. It needs no index. */
  readonly at: 'at' | 'begun_at' | 'created_at'
  /** What is true of a row that may be deleted. Default: all may. */
  readonly over?: RawBuilder<boolean>
}

/**
 * Deletes all rows from before a time, in parts. Each looks only at the next numbers, so that no run reads the young
 * rows. Returns how many it deleted.
 */
export async function dropOldRows(
  state: State,
  { name, number, at, over = sql`1 = 1` }: Table,
  before: string,
  goesOn?: () => boolean,
): Promise<number> {
  const [table, key, time] = [sql.table(name), sql.ref(number), sql.ref(at)]
  const now = iso(state.clock.now())
  let [after, dropped] = [0, 0]
  await writeInParts(
    state,
    async (trx, rows) => {
      const next = sql`select ${key} as key, ${time} as at from ${table} where ${key} > ${after}
        order by ${key} limit ${rows}`
      const { rows: found } = await sql<{ last: number | null; oldest: string }>`
        select max(key) as last, min(at) as oldest from (${next}) as part`.execute(trx)
      const { last = null, oldest = now } = found[0] ?? {}
      // Rows from the future, of a clock that was wrong, do not hide older ones behind them.
      if (last === null || (oldest >= before && oldest <= now)) return false
      const { numAffectedRows } = await sql`
        delete from ${table} where ${key} > ${after} and ${key} <= ${last} and ${time} < ${before} and ${over}
        `.execute(trx)
      dropped += Number(numAffectedRows)
      after = last
      return true
    },
    goesOn,
  )
  return dropped
}
