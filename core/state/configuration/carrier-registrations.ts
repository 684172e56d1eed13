import type { Selectable } from 'kysely'
import type { CarrierRegistrationStateTable, Db, Trx } from '../db.ts'

export type CarrierRegistrationState = Selectable<CarrierRegistrationStateTable>

/** Saves the state of a node's registration with a carrier, in the place of those that ended nodes left. */
export const saveRegistrationState = async (db: Db | Trx, row: CarrierRegistrationState): Promise<void> => {
  await db
    .deleteFrom('carrier_registration_state')
    .where('carrier_id', '=', row.carrier_id)
    .where('node_id', '!=', row.node_id)
    .where('node_id', 'not in', eb => eb.selectFrom('node').select('id'))
    .execute()
  await db
    .insertInto('carrier_registration_state')
    .values(row)
    .onConflict(conflict => conflict.columns(['carrier_id', 'node_id']).doUpdateSet(row))
    .execute()
}

/**
 * Lists the registrations with carriers, current or past: their settings without the password, and their state. Each
 * node registers by itself. The state is that of a running node, a registered one if there is any, else the latest.
 */
export async function listCarrierRegistrations(db: Db | Trx) {
  const [settings, states] = await Promise.all([
    db
      .selectFrom('carrier_registration')
      .select(['carrier_id', 'registrar', 'transport', 'username', 'contact_user', 'expires_seconds', 'enabled'])
      .select(['tls_verification', 'tls_fingerprint'])
      .execute(),
    db
      .selectFrom('carrier_registration_state')
      .leftJoin('node', 'node.id', 'carrier_registration_state.node_id')
      .selectAll('carrier_registration_state')
      .orderBy(eb =>
        eb.case().when('node.id', 'is', null).then(2).when('state', '=', 'registered').then(0).else(1).end(),
      )
      .orderBy('changed_at', 'desc')
      .execute(),
  ])
  return settings.map(setting => ({
    ...setting,
    state: states.find(state => state.carrier_id === setting.carrier_id) ?? null,
  }))
}
