import { queueWrite } from '../port.ts'
import { type AnyDb, createTables } from './create-tables.ts'

/** Machines that share a database say who they are. A lost node is marked before its calls are ended. */
export async function up(db: AnyDb): Promise<void> {
  await createTables(db, {
    machine: { key: 'id', columns: 'id host base_url sip_port:int version settings started_at seen_at' },
  })
  await queueWrite(db, db.schema.alterTable('node').addColumn('lost_at', 'text'))
}
