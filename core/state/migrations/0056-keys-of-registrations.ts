import { queueWrite } from '../port.ts'
import type { AnyDb } from './create-tables.ts'

/**
 * A client's registration says which auth token it was made with, so that it ends when the token is replaced. It is
 * empty in rows of earlier releases, which last 2 h at most.
 */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('registration').addColumn('key_id', 'text', column => column.notNull().defaultTo('')),
  )
}
