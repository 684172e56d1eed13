import type { Selectable } from 'kysely'
import { iso } from '../../../runtime/clock.ts'
import { newId } from '../../../runtime/ids.ts'
import type { WebhookDeliveryTable } from '../../db.ts'
import { inserting, numberOf, type Query, textOf } from '../query.ts'

/** Events for a project's webhook endpoints, written in the transaction of the change that they report. */

export interface ProjectEvent {
  readonly project_id: string
  readonly kind: string
  readonly data: object
  /** Set it when the event may be queued again after a crash: it must keep its id. Default: a fresh id. */
  readonly id?: string
}

/** How long a delivery is retried: a day. */
export const DELIVERY_LIFE_MS = 24 * 60 * 60 * 1000

type Delivery = Omit<Selectable<WebhookDeliveryTable>, 'position'>

/** Builds a delivery without attempts. */
export const newDelivery = (
  endpoint: { readonly id: string; readonly project_id: string },
  { event_id, event_kind, payload }: Pick<Delivery, 'event_id' | 'event_kind' | 'payload'>,
  now_ms: number,
  uuid: string = newId.uuid(),
): Delivery => ({
  event_id,
  event_kind,
  payload,
  id: `whd_${uuid}`,
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

const ENDPOINTS = `select id, enabled, event_kinds from webhook_endpoint
    where project_id = ? and deleted_at is null order by created_at, id`
const insertDelivery = inserting('webhook_delivery', [
  ...(['id', 'event_id', 'event_kind', 'payload', 'endpoint_id', 'project_id', 'state', 'attempts'] as const),
  ...(['next_attempt_at', 'lease_until', 'last_status', 'last_error', 'last_attempt_at', 'delivered_at'] as const),
  ...(['expires_at', 'created_at'] as const),
])

/**
 * Queues an event for every enabled endpoint of the project that subscribes to its kind. Returns their number. A
 * function makes the data only when an endpoint listens.
 */
export function queueProjectEvent(
  query: Query,
  { project_id, kind, data, id }: Omit<ProjectEvent, 'data'> & { readonly data: object | (() => object) },
  now_ms: number,
): number {
  const listening = query(ENDPOINTS, project_id).filter(
    endpoint =>
      numberOf(endpoint, 'enabled') !== 0 &&
      (JSON.parse(textOf(endpoint, 'event_kinds')) as readonly string[]).includes(kind),
  )
  if (listening.length === 0) return 0
  const event_id = id ?? `evt_${query.uuid()}`
  const payload = JSON.stringify({
    id: event_id,
    kind,
    created_at: iso(now_ms),
    data: typeof data === 'function' ? data() : data,
  })
  for (const endpoint of listening)
    insertDelivery(
      query,
      newDelivery(
        { id: textOf(endpoint, 'id'), project_id },
        { event_id, event_kind: kind, payload },
        now_ms,
        query.uuid(),
      ),
    )
  return listening.length
}
