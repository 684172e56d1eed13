import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Machines may do a part of the work. Each says which, and what the peers of all must know of it. */
export async function up(db: AnyDb): Promise<void> {
  for (const name of ['roles', 'hosts', 'certificate'])
    await queueWrite(
      db,
      db.schema.alterTable('machine').addColumn(name, 'text', column => column.notNull().defaultTo('')),
    )
}
