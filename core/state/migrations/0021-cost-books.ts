import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** A book of rates may also say what a carrier takes. */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(db, db.schema.alterTable('price_book').addColumn('carrier_id', 'text'))
  await queueWrite(
    db,
    db.schema.createIndex('price_book_carrier').on('price_book').columns(['carrier_id', 'direction', 'effective_from']),
  )
}
