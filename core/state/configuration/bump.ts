import type { Db, Trx } from '../db.ts'
import { queueWrite } from '../port.ts'

/** Signals the signaling nodes that there is a change to apply. Call it in the transaction of the change. */
export const bumpConfiguration = (trx: Db): Promise<void> => queueWrite(trx, BUMP)

/** Does the same, and returns the configuration's revision that has the change. */
export async function nextConfiguration(trx: Trx): Promise<number> {
  const { revision } = await trx
    .updateTable('configuration')
    .set(eb => ({ revision: eb('revision', '+', 1) }))
    .where('id', '=', 1)
    .returning('revision')
    .executeTakeFirstOrThrow()
  return revision
}

const BUMP = { sql: 'update configuration set revision = revision + 1 where id = 1', parameters: [] } as const
