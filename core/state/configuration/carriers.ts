import { type CarrierStep, type CarrierWish, planCarriers } from '../../domain/carriers/plan.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, Trx } from '../db.ts'
import type { State } from '../index.ts'
import { bumpConfiguration } from './bump.ts'
import { listCarrierRegistrations } from './carrier-registrations.ts'

interface NewCarrier {
  readonly name: string
  readonly codecs: readonly string[]
  /** Source networks of the carrier's INVITEs. */
  readonly sources: readonly string[]
  readonly targets: CarrierWish['targets']
  readonly routes: readonly { readonly prefix: string; readonly priority: number; readonly cost_minor: number }[]
}

/** Adds a carrier with its sources, targets and routes. Signaling nodes apply it in the background. Returns its id. */
export const addCarrier = (state: State, carrier: NewCarrier, now: string): Promise<string> =>
  state.transaction(async trx => {
    const id = await insertCarrier(trx, { ...carrier, enabled: true }, now)
    await bumpConfiguration(trx)
    return id
  })

async function insertCarrier(trx: Trx, carrier: NewCarrier & { readonly enabled: boolean }, now: string) {
  const id = newId.carrier()
  const { name, codecs, enabled } = carrier
  await trx
    .insertInto('carrier')
    .values({
      id,
      name,
      codecs: JSON.stringify(codecs),
      enabled: enabled ? 1 : 0,
      sandbox: 0,
      revision: 1,
      created_at: now,
    })
    .execute()
  await insertBelow(trx, id, carrier)
  return id
}

async function insertBelow(trx: Trx, carrier_id: string, rows: Pick<NewCarrier, 'sources' | 'targets' | 'routes'>) {
  const { sources, targets, routes } = rows
  for (const cidr of sources)
    await trx.insertInto('carrier_source').values({ id: newId.source(), carrier_id, cidr }).execute()
  for (const target of targets)
    await trx
      .insertInto('carrier_target')
      .values({ id: newId.target(), carrier_id, ...target, enabled: 1 })
      .execute()
  for (const route of routes)
    await trx
      .insertInto('carrier_route')
      .values({ id: `rou_${newId.uuid()}`, carrier_id, ...route })
      .execute()
}

/**
 * Changes the carriers to the desired state atomically, except for the sandbox carrier. `dry` changes nothing. Returns
 * the outcome.
 */
export const applyCarriers = (
  state: State,
  wished: readonly CarrierWish[],
  options: { readonly prune: boolean; readonly dry: boolean; readonly now: string },
): Promise<readonly CarrierStep[]> =>
  state.transaction(async trx => {
    const current = (await listCarriers(trx)).filter(({ sandbox }) => sandbox === 0)
    const steps = planCarriers(
      current.map(carrier => ({ ...carrier, enabled: carrier.enabled === 1 })),
      wished,
      options,
    )
    if (options.dry || steps.length === 0) return steps
    for (const step of steps)
      if (step.do === 'add') await insertCarrier(trx, step.wish, options.now)
      else if (step.do === 'remove') await deleteCarrier(trx, step.id)
      else await changeCarrier(trx, step)
    await bumpConfiguration(trx)
    return steps
  })

/** Changes a carrier. Rows that remain keep their ids, so that the evidence of a target stays valid. */
async function changeCarrier(trx: Trx, step: Extract<CarrierStep, { readonly do: 'change' }>): Promise<void> {
  const { id, wish, sources, targets, routes } = step
  const below = { carrier_id: id }
  for (const cidr of sources.removed)
    await trx
      .deleteFrom('carrier_source')
      .where(eb => eb.and({ ...below, cidr }))
      .execute()
  for (const { sip_uri, transport, priority, weight } of targets.removed)
    await trx
      .deleteFrom('carrier_target')
      .where(eb => eb.and({ ...below, sip_uri, transport, priority, weight }))
      .execute()
  for (const { prefix, priority, cost_minor } of routes.removed)
    await trx
      .deleteFrom('carrier_route')
      .where(eb => eb.and({ ...below, prefix, priority, cost_minor }))
      .execute()
  await insertBelow(trx, id, { sources: sources.added, targets: targets.added, routes: routes.added })
  await trx
    .updateTable('carrier')
    .set(eb => ({
      codecs: JSON.stringify(wish.codecs),
      enabled: wish.enabled ? (1 as const) : (0 as const),
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', id)
    .execute()
}

/** Lists every carrier with its sources, targets and routes, by name. */
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

/** Enables or disables a carrier for new calls. Returns false for an unknown id. */
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

/** Removes a carrier. Its running calls continue. Returns false for an unknown id. */
export const removeCarrier = (state: State, id: string): Promise<boolean> =>
  state.transaction(async trx => {
    const found = await deleteCarrier(trx, id)
    await bumpConfiguration(trx)
    return found
  })

async function deleteCarrier(trx: Trx, id: string): Promise<boolean> {
  for (const table of [...BELOW, 'carrier_registration', 'carrier_registration_state'] as const)
    await trx.deleteFrom(table).where('carrier_id', '=', id).execute()
  const { numDeletedRows } = await trx.deleteFrom('carrier').where('id', '=', id).executeTakeFirst()
  return numDeletedRows === 1n
}
