import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** The file of an export lies on the machine whose API began it. */
export const up = (db: AnyDb): Promise<void> =>
  queueWrite(
    db,
    db.schema.alterTable('call_export').addColumn('machine_id', 'text', column => column.notNull().defaultTo('')),
  )
