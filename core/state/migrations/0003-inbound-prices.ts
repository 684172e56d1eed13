import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Inbound calls have a price too. */
export async function up(db: AnyDb): Promise<void> {
  const changed = db.schema
    .alterTable('reservation')
    .addColumn('direction', 'text', column => column.notNull().defaultTo('outbound'))
  await queueWrite(db, changed)
}
