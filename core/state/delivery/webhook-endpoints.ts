import { type Selectable, sql } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { ProjectPlaces } from '../../runtime/project-places.ts'
import type { Db, Trx, WebhookDeliveryTable, WebhookEndpointTable } from '../db.ts'
import type { State } from '../index.ts'
import { dropOldRows } from '../maintenance/old-rows.ts'
import { callProcedure, queueProcedure, queueWrite, readTogether, statement, updateOf } from '../port.ts'
import { DELIVERY_LIFE_MS, newDelivery, type ProjectEvent } from '../procedures/running/events.ts'
import { MEND_SLACK_MS } from './outbox-delivery.ts'

export type WebhookEndpointRow = Selectable<WebhookEndpointTable>
export type WebhookDeliveryRow = Selectable<WebhookDeliveryTable>

export const findEndpoint = (db: Db, project_id: string, id: string): Promise<WebhookEndpointRow | undefined> =>
  db
    .selectFrom('webhook_endpoint')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', project_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()

export const listEndpoints = (db: Db, project_id: string): Promise<WebhookEndpointRow[]> =>
  db
    .selectFrom('webhook_endpoint')
    .selectAll()
    .where('project_id', '=', project_id)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export async function insertEndpoint(trx: Trx, row: WebhookEndpointRow): Promise<void> {
  await trx.insertInto('webhook_endpoint').values(row).execute()
}

/** Saves columns of an endpoint. Returns it at its next revision. */
export async function saveEndpoint(
  trx: Trx,
  endpoint: WebhookEndpointRow,
  changes: Partial<Omit<WebhookEndpointRow, 'id' | 'project_id' | 'revision' | 'updated_at'>>,
  now: string,
): Promise<WebhookEndpointRow> {
  const saved = { ...changes, revision: endpoint.revision + 1, updated_at: now }
  await trx.updateTable('webhook_endpoint').set(saved).where('id', '=', endpoint.id).execute()
  return { ...endpoint, ...saved }
}

/**
 * Queues an event for every enabled endpoint of the project that subscribes to its kind, in the transaction of the
 * change that it reports. Returns the number of endpoints.
 */
export const queueEvent = (trx: Trx, event: ProjectEvent, now_ms: number): Promise<number> =>
  callProcedure(trx, 'queue_event', { event, now_ms })

/** Queues many events. They travel to the state's thread with the transaction's next statement or its commit. */
export async function queueEvents(trx: Trx, events: readonly ProjectEvent[], now_ms: number): Promise<void> {
  for (const event of events) await queueProcedure(trx, 'queue_event', { event, now_ms })
}

export const insertDelivery = (
  trx: Trx,
  endpoint: WebhookEndpointRow,
  event: Pick<WebhookDeliveryRow, 'event_id' | 'event_kind' | 'payload'>,
  now_ms: number,
): Promise<WebhookDeliveryRow> =>
  trx
    .insertInto('webhook_delivery')
    .values(newDelivery(endpoint, event, now_ms))
    .returningAll()
    .executeTakeFirstOrThrow()

export function listDeliveries(
  db: Db,
  endpoint_id: string,
  page: { readonly limit: number; readonly before?: number },
): Promise<WebhookDeliveryRow[]> {
  const query = db
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('endpoint_id', '=', endpoint_id)
    .orderBy('position', 'desc')
    .limit(page.limit)
  return (page.before === undefined ? query : query.where('position', '<', page.before)).execute()
}

export const findDelivery = (db: Db, endpoint_id: string, id: string): Promise<WebhookDeliveryRow | undefined> =>
  db
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('id', '=', id)
    .where('endpoint_id', '=', endpoint_id)
    .executeTakeFirst()

/**
 * The first waiting delivery of each endpoint. The literal state and the expression keep to the index of waiting rows:
 * by the endpoint's index, each row that waits would read all that the endpoint was ever sent.
 */
const FIRST_OF_ENDPOINTS = sql<number>`(
  select min(position) from webhook_delivery where state = 'pending' group by endpoint_id || ''
)`

/**
 * Returns the next due delivery of each endpoint, so that a hanging endpoint delays no other. Those of the projects
 * `but_not_of` are left out.
 */
const dueDeliveries = (
  db: Db,
  now: string,
  limit: number,
  but_not_of: readonly string[],
): Promise<WebhookDeliveryRow[]> =>
  db
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('state', '=', 'pending')
    .where('next_attempt_at', '<=', now)
    .$if(but_not_of.length > 0, query => query.where('project_id', 'not in', [...but_not_of]))
    .where(eb => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<', now)]))
    .where('position', 'in', FIRST_OF_ENDPOINTS)
    .orderBy('next_attempt_at')
    .limit(limit)
    .execute()

/** The literal state matches the partial index of waiting deliveries. */
const ANY_PENDING = statement((db, _: object) =>
  db.selectFrom('webhook_delivery').select('id').where('state', '=', sql.lit('pending')).limit(1),
)

/**
 * Leases due deliveries that there are places for, in order within each endpoint. An expired lease belonged to a
 * process that is gone. Takes no write lock while nothing is due.
 */
export async function claimDeliveries(
  state: State,
  now_ms: number,
  places: Pick<ProjectPlaces, 'free' | 'full' | 'fitting'>,
): Promise<WebhookDeliveryRow[]> {
  const now = iso(now_ms)
  const full = places.full()
  const [pending] = await readTogether(state.db, ANY_PENDING({}))
  if (pending.length === 0 || (await dueDeliveries(state.db, now, 1, full)).length === 0) return []
  return state.transaction(async trx => {
    const first = places.fitting(await dueDeliveries(trx, now, places.free, full))
    const lease_until = iso(now_ms + LEASE_MS)
    for (const { id } of first) await queueWrite(trx, updateOf('webhook_delivery', { lease_until }, id))
    return first.map(delivery => ({ ...delivery, lease_until }))
  })
}

const LEASE_MS = 60_000

/** Stores the outcome of an attempt, unless another process has taken the delivery since this one did. */
export async function settleDelivery(
  db: Db,
  { id, lease_until }: Pick<WebhookDeliveryRow, 'id' | 'lease_until'>,
  outcome: Pick<WebhookDeliveryRow, 'state' | 'last_status' | 'last_error' | 'delivered_at' | 'next_attempt_at'> & {
    readonly attempts: number
    readonly last_attempt_at: string
  },
): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ ...outcome, lease_until: null })
    .where('id', '=', id)
    .where('lease_until', lease_until === null ? 'is' : '=', lease_until)
    .execute()
}

/**
 * Corrects what waiting deliveries got before the clock was set back. Those last tried, or made, in the future are due
 * now: nothing behind them leaves before they do.
 */
export async function mendDeliveryTimes(db: Db, now_ms: number): Promise<void> {
  const after = (ms: number): string => iso(now_ms + ms + MEND_SLACK_MS)
  await sql`update webhook_delivery set next_attempt_at = ${iso(now_ms)} where state = 'pending'
    and next_attempt_at > ${after(0)} and coalesce(last_attempt_at, created_at) > ${after(0)}`.execute(db)
  await sql`update webhook_delivery set lease_until = null where state = 'pending'
    and lease_until > ${after(LEASE_MS)}`.execute(db)
  await sql`update webhook_delivery set expires_at = ${iso(now_ms + DELIVERY_LIFE_MS)} where state = 'pending'
    and expires_at > ${after(DELIVERY_LIFE_MS)}`.execute(db)
}

/** Deletes deliveries from before `before` that have ended. Returns their number. */
export const dropOldDeliveries = (state: State, before: string, goesOn?: () => boolean): Promise<number> =>
  dropOldRows(
    state,
    { name: 'webhook_delivery', number: 'position', at: 'created_at', over: sql`state <> 'pending'` },
    before,
    goesOn,
  )
