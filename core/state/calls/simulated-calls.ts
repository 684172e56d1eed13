import type { Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { NumberRow } from '../configuration/numbers.ts'
import type { CallTable, Db, SimulatedCallTable } from '../db.ts'

/** Simulated calls of the general API's sandbox, and the list of its real calls. */

export type SimulatedCallRow = Selectable<SimulatedCallTable>

export const insertSimulatedCall = (
  db: Db,
  call: Omit<SimulatedCallRow, 'position' | 'created_at'>,
  now_ms: number,
): Promise<SimulatedCallRow> =>
  db
    .insertInto('simulated_call')
    .values({ ...call, created_at: iso(now_ms) })
    .returningAll()
    .executeTakeFirstOrThrow()

export const findSimulatedCall = (db: Db, project_id: string, id: string): Promise<SimulatedCallRow | undefined> =>
  db
    .selectFrom('simulated_call')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .executeTakeFirst()

/** Lists a project's simulated calls, newest first. */
export const listSimulatedCalls = (
  db: Db,
  project_id: string,
  page: { readonly offset: number; readonly limit: number },
): Promise<SimulatedCallRow[]> =>
  db
    .selectFrom('simulated_call')
    .selectAll()
    .where('project_id', '=', project_id)
    .orderBy('position', 'desc')
    .offset(page.offset)
    .limit(page.limit)
    .execute()

/** Deletes old simulated calls, so that a sandbox cannot fill the disk. Returns their number. */
export async function pruneSimulatedCalls(db: Db, before_ms: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('simulated_call')
    .where('created_at', '<', iso(before_ms))
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Marks the request of a call that the general API placed. Customers' text cannot contain it: JSON escapes quotes. */
const GENERAL_MARK = '"api":"general"'

/** Lists an account's real calls through the general API, newest first. */
export const listGeneralCalls = (
  db: Db,
  account_sid: string,
  page: { readonly offset: number; readonly limit: number },
): Promise<Selectable<CallTable>[]> =>
  db
    .selectFrom('call')
    .selectAll()
    .where('account_sid', '=', account_sid)
    .where('request', 'like', `%${GENERAL_MARK}%`)
    .orderBy('position', 'desc')
    .offset(page.offset)
    .limit(page.limit)
    .execute()

/** Returns the caller number of a call whose program names none. */
export const firstHeldNumber = (db: Db, project_id: string): Promise<NumberRow | undefined> =>
  db
    .selectFrom('number')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('status', '=', 'held')
    .orderBy('e164')
    .executeTakeFirst()
