import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** A queue is kept by one node, to which calls of other machines go. A machine may serve the APIs alone. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('call_queue').addColumn('node_id', 'text'))
  await queueWrite(
    db,
    db.schema.alterTable('machine').addColumn('takes_calls', 'integer', column => column.notNull().defaultTo(1)),
  )
}
