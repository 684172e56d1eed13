import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/** A number has a second route, for calls that the targets of its first cannot take. */
export async function up(db: AnyDb): Promise<void> {
  for (const column of ['fallback_kind', 'fallback_id'])
    await queueWrite(db, db.schema.alterTable('number').addColumn(column, 'text'))
}
