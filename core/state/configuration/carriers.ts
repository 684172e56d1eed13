import type { Insertable } from 'kysely'
import type { CarrierChange, CarrierWish } from '../../domain/carriers/plan.ts'
import { newId } from '../../runtime/ids.ts'
import type { CarrierCredentialTable, CarrierRegistrationTable, Db, Trx } from '../db.ts'
import { listCarrierRegistrations } from './carrier-registrations.ts'

/** Adds a carrier with its sources, targets and routes. Returns its id. */
export async function insertCarrier(trx: Trx, carrier: CarrierWish, now: string): Promise<string> {
  const id = newId.carrier()
  const { name, codecs, enabled, redirects = 'off' } = carrier
  await trx
    .insertInto('carrier')
    .values({
      id,
      name,
      codecs: JSON.stringify(codecs),
      enabled: enabled ? 1 : 0,
      sandbox: 0,
      redirects,
      revision: 1,
      created_at: now,
    })
    .execute()
  await insertBelow(trx, id, carrier)
  return id
}

async function insertBelow(trx: Trx, carrier_id: string, rows: Pick<CarrierWish, 'sources' | 'targets' | 'routes'>) {
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

/** Changes a carrier. Rows that remain keep their ids, so that the evidence of a target stays valid. */
export async function changeCarrier(trx: Trx, step: CarrierChange): Promise<void> {
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
      name: wish.name,
      codecs: JSON.stringify(wish.codecs),
      enabled: wish.enabled ? (1 as const) : (0 as const),
      redirects: wish.redirects ?? 'off',
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', id)
    .execute()
}

/** Stops or starts the calls of a carrier. */
export async function setCarrierEnabled(trx: Trx, id: string, enabled: boolean): Promise<void> {
  await trx
    .updateTable('carrier')
    .set(eb => ({ enabled: enabled ? (1 as const) : (0 as const), revision: eb('revision', '+', 1) }))
    .where('id', '=', id)
    .execute()
}

/** What a carrier has at most one of: what answers its challenges, and how we register with it. */
export interface CarrierParts {
  readonly carrier_credential: Omit<Insertable<CarrierCredentialTable>, 'carrier_id'>
  readonly carrier_registration: Omit<Insertable<CarrierRegistrationTable>, 'carrier_id'>
}

/** Sets a part of a carrier in place of the one before, and gives the carrier its next revision; null removes it. */
export async function putCarrierPart<Part extends keyof CarrierParts>(
  trx: Trx,
  carrier_id: string,
  part: Part,
  row: CarrierParts[Part] | null,
): Promise<void> {
  await trx
    .updateTable('carrier')
    .set(eb => ({ revision: eb('revision', '+', 1) }))
    .where('id', '=', carrier_id)
    .execute()
  // Kysely cannot relate the columns of a table to a table that it does not know.
  const table = part as 'carrier_credential'
  await trx.deleteFrom(table).where('carrier_id', '=', carrier_id).execute()
  if (row)
    await trx
      .insertInto(table)
      .values({ carrier_id, ...(row as CarrierParts['carrier_credential']) })
      .execute()
}

const liveCalls = (db: Db | Trx) =>
  db
    .selectFrom('call')
    .select(['carrier_id', eb => eb.fn.countAll<number>().as('calls')])
    .where('ended_at', 'is', null)
    .groupBy('carrier_id')
    .execute()

export type Carrier = Awaited<ReturnType<typeof listCarriers>>[number]

/** Lists every carrier with its sources, targets, routes and number of live calls, by name. */
export async function listCarriers(db: Db | Trx) {
  const [carriers, sources, targets, routes, credentials, registrations, live] = await Promise.all([
    db.selectFrom('carrier').selectAll().orderBy('name').execute(),
    db.selectFrom('carrier_source').selectAll().orderBy('cidr').execute(),
    db.selectFrom('carrier_target').selectAll().orderBy('priority').execute(),
    db.selectFrom('carrier_route').selectAll().orderBy('prefix').execute(),
    db.selectFrom('carrier_credential').select(['carrier_id', 'username']).execute(),
    listCarrierRegistrations(db),
    liveCalls(db),
  ])
  return carriers.map(carrier => ({
    ...carrier,
    codecs: JSON.parse(carrier.codecs) as string[],
    sources: sources.filter(row => row.carrier_id === carrier.id).map(row => row.cidr),
    targets: targets.filter(row => row.carrier_id === carrier.id),
    routes: routes.filter(row => row.carrier_id === carrier.id),
    digest_username: credentials.find(row => row.carrier_id === carrier.id)?.username ?? null,
    registration: registrations.find(row => row.carrier_id === carrier.id) ?? null,
    live_calls: Number(live.find(row => row.carrier_id === carrier.id)?.calls ?? 0),
  }))
}

export const findCarrier = async (db: Db | Trx, id: string): Promise<Carrier | undefined> =>
  (await listCarriers(db)).find(carrier => carrier.id === id)

const BELOW = ['carrier_source', 'carrier_target', 'carrier_route'] as const

/** Removes a carrier. Its running calls continue. */
export async function deleteCarrier(trx: Trx, id: string): Promise<void> {
  for (const table of [...BELOW, 'carrier_credential', 'carrier_registration', 'carrier_registration_state'] as const)
    await trx.deleteFrom(table).where('carrier_id', '=', id).execute()
  await trx.deleteFrom('carrier').where('id', '=', id).execute()
}
