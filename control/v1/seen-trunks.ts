import type { Db } from '../../core/state/index.ts'
import type { Caller } from '../http/caller.ts'

/**
 * Returns the trunks to which an answer is limited: undefined for the whole project, `none` when the caller cannot
 * access the requested trunk.
 */
export async function seenTrunks(
  db: Db,
  project_id: string,
  caller: Caller,
  trunk_id: string | undefined,
): Promise<readonly string[] | undefined | 'none'> {
  if (trunk_id === undefined && caller.subaccount_id === null) return undefined
  let query = db.selectFrom('trunk').select('id').where('project_id', '=', project_id)
  if (trunk_id !== undefined) query = query.where('id', '=', trunk_id)
  if (caller.subaccount_id !== null) query = query.where('subaccount_id', '=', caller.subaccount_id)
  const ids = (await query.execute()).map(row => row.id)
  return trunk_id !== undefined && ids.length === 0 ? 'none' : ids
}
