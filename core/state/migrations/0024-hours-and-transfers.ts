import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Policies have hours in which outbound calls may begin; trunks say what a transfer by their peer does. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('outbound_policy').addColumn('calling_hours', 'text'))
  await queueWrite(
    db,
    db.schema.alterTable('trunk').addColumn('transfers', 'text', column => column.notNull().defaultTo('consume')),
  )
}
