import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** Machines attest those that do not reach the database. The lease of a task says which of its holders has it. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('node').addColumn('attested_at', 'text'))
  await queueWrite(
    db,
    db.schema.alterTable('task_lease').addColumn('term', 'integer', column => column.notNull().defaultTo(0)),
  )
}
