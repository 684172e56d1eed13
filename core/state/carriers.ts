import { newId } from '../runtime/ids.ts'
import { bumpConfiguration } from './bootstrap.ts'
import { listCarrierRegistrations } from './carrier-registrations.ts'
import type { CarrierTargetTable, Db, State } from './index.ts'

export interface NewCarrier {
  readonly name: string
  readonly codecs: readonly string[]
  /** Networks from which the carrier's INVITEs come. */
  readonly sources: readonly string[]
  readonly targets: readonly Pick<CarrierTargetTable, 'sip_uri' | 'transport' | 'priority' | 'weight'>[]
  readonly routes: readonly { readonly prefix: string; readonly priority: number; readonly cost_minor: number }[]
}

/** Adds a carrier with everything below it; signaling nodes apply it in the background. Returns its id. */
export function addCarrier(state: State, carrier: NewCarrier, now: string): Promise<string> {
  return state.transaction(async trx => {
    const id = newId.carrier()
    const { name } = carrier
    await trx
      .insertInto('carrier')
      .values({
        id,
        name,
        codecs: JSON.stringify(carrier.codecs),
        enabled: 1,
        sandbox: 0,
        revision: 1,
        created_at: now,
      })
      .execute()
    const below = { carrier_id: id }
    for (const cidr of carrier.sources)
      await trx
        .insertInto('carrier_source')
        .values({ id: newId.source(), ...below, cidr })
        .execute()
    for (const target of carrier.targets)
      await trx
        .insertInto('carrier_target')
        .values({ id: newId.target(), ...below, ...target, enabled: 1 })
        .execute()
    for (const route of carrier.routes)
      await trx
        .insertInto('carrier_route')
        .values({ id: `rou_${newId.uuid()}`, ...below, ...route })
        .execute()
    await bumpConfiguration(trx)
    return id
  })
}

/** Every carrier with its sources, targets and routes, by name. */
export async function listCarriers(db: Db) {
  const [carriers, sources, targets, routes, registrations] = await Promise.all([
    db.selectFrom('carrier').selectAll().orderBy('name').execute(),
    db.selectFrom('carrier_source').selectAll().orderBy('cidr').execute(),
    db.selectFrom('carrier_target').selectAll().orderBy('priority').execute(),
    db.selectFrom('carrier_route').selectAll().orderBy('prefix').execute(),
    listCarrierRegistrations(db),
  ])
  return carriers.map(carrier => ({
    ...carrier,
    codecs: JSON.parse(carrier.codecs) as string[],
    sources: sources.filter(row => row.carrier_id === carrier.id).map(row => row.cidr),
    targets: targets.filter(row => row.carrier_id === carrier.id),
    routes: routes.filter(row => row.carrier_id === carrier.id),
    registration: registrations.find(row => row.carrier_id === carrier.id) ?? null,
  }))
}

/** Closes or opens a carrier for new calls; false when there is none of that id. */
export const enableCarrier = (state: State, id: string, enabled: boolean): Promise<boolean> =>
  state.transaction(async trx => {
    const { numUpdatedRows } = await trx
      .updateTable('carrier')
      .set(eb => ({ enabled: enabled ? 1 : 0, revision: eb('revision', '+', 1) }))
      .where('id', '=', id)
      .executeTakeFirst()
    await bumpConfiguration(trx)
    return numUpdatedRows === 1n
  })

const BELOW = ['carrier_source', 'carrier_target', 'carrier_route'] as const

/** Removes a carrier; its calls go on. False when there is none of that id. */
export const removeCarrier = (state: State, id: string): Promise<boolean> =>
  state.transaction(async trx => {
    for (const table of [...BELOW, 'carrier_registration', 'carrier_registration_state'] as const)
      await trx.deleteFrom(table).where('carrier_id', '=', id).execute()
    const { numDeletedRows } = await trx.deleteFrom('carrier').where('id', '=', id).executeTakeFirst()
    await bumpConfiguration(trx)
    return numDeletedRows === 1n
  })
