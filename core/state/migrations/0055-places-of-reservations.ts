import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/**
 * A settled reservation says where its call stands in the history, so that an export of calls in their order finds the
 * reservations in the same order. The id of a call is random. Older reservations are found by it still.
 */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('reservation').addColumn('call_position', 'bigint'))
  await queueWrite(
    db,
    db.schema.createIndex('reservation_call').on('reservation').columns(['call_position', 'call_sid']),
  )
}
