import type { Selectable } from 'kysely'
import type { CarrierRegistrationStateTable, Db, Trx } from '../db.ts'

export type CarrierRegistrationState = Selectable<CarrierRegistrationStateTable>

export const saveRegistrationState = async (db: Db | Trx, row: CarrierRegistrationState): Promise<void> => {
  await db
    .insertInto('carrier_registration_state')
    .values(row)
    .onConflict(conflict => conflict.column('carrier_id').doUpdateSet(row))
    .execute()
}

/** Lists the registrations with carriers, current or past: their settings without the password, and their state. */
export async function listCarrierRegistrations(db: Db | Trx) {
  const [settings, states] = await Promise.all([
    db
      .selectFrom('carrier_registration')
      .select(['carrier_id', 'registrar', 'transport', 'username', 'contact_user', 'expires_seconds', 'enabled'])
      .select(['tls_verification', 'tls_fingerprint'])
      .execute(),
    db.selectFrom('carrier_registration_state').selectAll().execute(),
  ])
  return settings.map(setting => ({
    ...setting,
    state: states.find(state => state.carrier_id === setting.carrier_id) ?? null,
  }))
}
