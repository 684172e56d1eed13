import type { Selectable } from 'kysely'
import { iso } from '../runtime/clock.ts'
import { newId } from '../runtime/ids.ts'
import type { Db, Trx, WebhookDeliveryTable, WebhookEndpointTable } from './index.ts'

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

/** Saves columns of an endpoint and returns it at its next revision. */
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

/** An event stops being retried after a day. */
const DELIVERY_LIFE_MS = 24 * 60 * 60 * 1000

/**
 * Queues an event for every enabled endpoint of the project that asked for its kind, in the transaction of what it
 * tells. Returns how many endpoints will hear of it.
 */
export async function queueEvent(
  trx: Trx,
  event: {
    readonly project_id: string
    readonly kind: string
    readonly data: object
    /** Where it is told again after a crash it must have the same id; else it gets a fresh one. */
    readonly id?: string
  },
  now_ms: number,
): Promise<number> {
  const endpoints = await listEndpoints(trx, event.project_id)
  const event_id = event.id ?? `evt_${newId.uuid()}`
  const payload = JSON.stringify({ id: event_id, kind: event.kind, created_at: iso(now_ms), data: event.data })
  let queued = 0
  for (const endpoint of endpoints) {
    const kinds = JSON.parse(endpoint.event_kinds) as string[]
    if (endpoint.enabled === 0 || !kinds.includes(event.kind)) continue
    await insertDelivery(trx, endpoint, { event_id, event_kind: event.kind, payload }, now_ms)
    queued += 1
  }
  return queued
}

export async function insertDelivery(
  trx: Trx,
  endpoint: WebhookEndpointRow,
  event: Pick<WebhookDeliveryRow, 'event_id' | 'event_kind' | 'payload'>,
  now_ms: number,
): Promise<WebhookDeliveryRow> {
  return trx
    .insertInto('webhook_delivery')
    .values({
      event_id: event.event_id,
      event_kind: event.event_kind,
      payload: event.payload,
      id: `whd_${newId.uuid()}`,
      endpoint_id: endpoint.id,
      project_id: endpoint.project_id,
      state: 'pending',
      attempts: 0,
      next_attempt_at: iso(now_ms),
      lease_until: null,
      last_status: null,
      last_error: null,
      last_attempt_at: null,
      delivered_at: null,
      expires_at: iso(now_ms + DELIVERY_LIFE_MS),
      created_at: iso(now_ms),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

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
 * The next delivery of each endpoint that has one due, with a lease: order holds within an endpoint, and an endpoint
 * that hangs holds up nobody else. A lease that ran out belonged to a process that is gone.
 */
export async function claimDeliveries(trx: Trx, now_ms: number, limit: number): Promise<WebhookDeliveryRow[]> {
  const now = iso(now_ms)
  const first = await trx
    .selectFrom('webhook_delivery as first')
    .selectAll()
    .where('state', '=', 'pending')
    .where('next_attempt_at', '<=', now)
    .where(eb => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<', now)]))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook_delivery as earlier')
            .select('earlier.id')
            .whereRef('earlier.endpoint_id', '=', 'first.endpoint_id')
            .where('earlier.state', '=', 'pending')
            .whereRef('earlier.position', '<', 'first.position'),
        ),
      ),
    )
    .orderBy('next_attempt_at')
    .limit(limit)
    .execute()
  for (const { id } of first)
    await trx
      .updateTable('webhook_delivery')
      .set({ lease_until: iso(now_ms + LEASE_MS) })
      .where('id', '=', id)
      .execute()
  return first
}

const LEASE_MS = 60_000

export async function settleDelivery(
  db: Db,
  id: string,
  outcome: Pick<WebhookDeliveryRow, 'state' | 'last_status' | 'last_error' | 'delivered_at' | 'next_attempt_at'> & {
    readonly attempts: number
    readonly last_attempt_at: string
  },
): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ ...outcome, lease_until: null })
    .where('id', '=', id)
    .execute()
}

/** Forgets deliveries that ended before `before`; returns how many. */
export async function dropOldDeliveries(db: Db, before: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('webhook_delivery')
    .where('state', '!=', 'pending')
    .where('created_at', '<', before)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
