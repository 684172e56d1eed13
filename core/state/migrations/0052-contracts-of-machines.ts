import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** A machine says which migrations that take something away its version can live with. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('machine').addColumn('contracts', 'text', column => column.notNull().defaultTo('')),
  )
}
