import type { Db } from '../db.ts'
import { queueWrite } from '../port.ts'

/** Signals the signaling nodes that there is a change to apply. Call it in the transaction of the change. */
export const bumpConfiguration = (trx: Db): Promise<void> => queueWrite(trx, BUMP)

const BUMP = { sql: 'update configuration set revision = revision + 1 where id = 1', parameters: [] } as const
