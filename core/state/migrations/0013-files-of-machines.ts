import { queueWrite } from '../port.ts'
import { type AnyDb, createTables } from './create-tables.ts'

/** A recording lies on a machine. Each node registers with a carrier by itself; its state is rebuilt when it starts. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('recording').addColumn('machine_id', 'text', column => column.notNull().defaultTo('')),
  )
  await queueWrite(db, db.schema.dropTable('carrier_registration_state'))
  await createTables(db, {
    carrier_registration_state: {
      key: 'carrier_id node_id',
      columns:
        'carrier_id node_id state detail? registered_at? expires_at? next_try_at? changed_at last_code:int? ' +
        'failures:int',
    },
  })
}
