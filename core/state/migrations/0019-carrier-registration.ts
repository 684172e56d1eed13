import { type AnyDb, createTable } from './columns.ts'

/** What a carrier wants of us to register with it, and how that stands. */
export async function up(db: AnyDb): Promise<void> {
  await createTable(db, 'carrier_registration', {
    key: 'carrier_id',
    text: 'registrar transport username password_sealed contact_user',
    integer: 'expires_seconds enabled',
  })
  await createTable(db, 'carrier_registration_state', {
    key: 'carrier_id',
    text: 'node_id state detail? registered_at? expires_at? next_try_at? changed_at',
    integer: 'last_code? failures',
  })
}
