import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** What a call cost the operator stands beside what it cost the customer. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('reservation').addColumn('carrier_id', 'text'))
  await queueWrite(db, db.schema.alterTable('reservation').addColumn('cost_minor', 'bigint'))
}
