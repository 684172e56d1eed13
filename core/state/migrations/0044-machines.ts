import { queueWrite } from '../port.ts'
import { type AnyDb, createTables } from './create-tables.ts'

/**
 * Several machines: which digest nonces have been claimed, whose edge holds the flow of a registered contact, and where
 * the edges reach each other.
 */
export async function up(db: AnyDb): Promise<void> {
  await queueWrite(
    db,
    db.schema.alterTable('registration').addColumn('machine_id', 'text', column => column.notNull().defaultTo('')),
  )
  await queueWrite(db, db.schema.createIndex('registration_change').on('registration').columns(['registered_at']))
  await createTables(db, {
    edge_link: { key: 'machine_id', columns: 'machine_id host port:int' },
    nonce_claim: { key: 'mac', columns: 'mac expires_at', indexes: { nonce_claim_expiry: 'expires_at' } },
  })
}
