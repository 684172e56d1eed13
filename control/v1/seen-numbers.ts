import { type NumberRow, numbersOfRange } from '../../core/state/configuration/numbers.ts'
import type { Db } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'

/**
 * Returns the numbers of a range; null when the caller may not access all of them. Numbers belong to the project: a key
 * that is restricted to a subaccount can access only those routed to the subaccount's trunks and subtrunks.
 */
export async function seenNumbers(
  db: Db,
  caller: Caller,
  project_id: string,
  range: { readonly start: string; readonly end: string },
): Promise<readonly NumberRow[] | null> {
  const numbers = await numbersOfRange(db, project_id, range)
  if (caller.subaccount_id === null) return numbers
  const { subaccount_id } = caller
  const trunks = await db.selectFrom('trunk').select('id').where('subaccount_id', '=', subaccount_id).execute()
  const ids = trunks.map(({ id }) => id)
  const subtrunks =
    ids.length === 0 ? [] : await db.selectFrom('subtrunk').select('id').where('trunk_id', 'in', ids).execute()
  const own = new Set([...ids, ...subtrunks.map(({ id }) => id)])
  return numbers.length > 0 && numbers.every(({ route_id }) => route_id !== null && own.has(route_id)) ? numbers : null
}
