import { createHmac, randomInt } from 'node:crypto'
import { timedSignatureData } from '../../core/domain/webhooks/signature.ts'
import { iso } from '../../core/runtime/clock.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import { ProjectPlaces } from '../../core/runtime/project-places.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import {
  claimDeliveries,
  dropOldDeliveries,
  settleDelivery,
  type WebhookDeliveryRow,
  type WebhookEndpointRow,
} from '../../core/state/delivery/webhook-endpoints.ts'
import type { Services } from '../http/services.ts'
import type { Reconciler } from './reconciler.ts'

const AT_ONCE = 50
const FIRST_DELAY_MS = 10_000
const MAX_DELAY_MS = 60 * 60 * 1000
const KEPT_MS = 30 * 24 * 60 * 60 * 1000

/**
 * Delivers signed events to webhook endpoints: at least once, in order for each endpoint, retried with a growing delay
 * for 24 hours. A slow endpoint does not delay the others, and a project with many leaves places to the others. Another
 * process takes over the deliveries of a dead one.
 */
export const webhookDeliveries = (http: Pick<HttpClient, 'request' | 'close'>): Reconciler => {
  const busy = new Map<string, Promise<void>>()
  const places = new ProjectPlaces(AT_ONCE)
  return {
    name: 'webhook-deliveries',
    period_ms: 1000,
    runs: 'everywhere',
    topics: ['outbox'],
    async run(services) {
      const { state, clock, bus, log } = services
      if (places.free === 0) return
      for (const delivery of await claimDeliveries(state, clock.now(), places)) {
        places.take(delivery.project_id)
        // Not awaited, because the slowest endpoint must not delay the next run for the others.
        const work = deliver(services, http, delivery)
          .catch(err => log.error({ err, delivery_id: delivery.id }, 'a delivery could not be settled'))
          .then(() => {
            busy.delete(delivery.id)
            places.give(delivery.project_id)
            bus.ring('outbox')
          })
        busy.set(delivery.id, work)
      }
    },
    async stop() {
      await http.close()
      await Promise.all(busy.values())
    },
  }
}

export const oldDeliveries: Reconciler = {
  name: 'old-deliveries',
  period_ms: 3_600_000,
  runs: 'once',
  async run({ state, clock }, goesOn) {
    await dropOldDeliveries(state, iso(clock.now() - KEPT_MS), goesOn)
  },
}

async function deliver(
  services: Services,
  http: Pick<HttpClient, 'request'>,
  delivery: WebhookDeliveryRow,
): Promise<void> {
  const { state, clock } = services
  const endpoint = await state.db
    .selectFrom('webhook_endpoint')
    .selectAll()
    .where('id', '=', delivery.endpoint_id)
    .executeTakeFirst()
  const attempts = delivery.attempts + 1
  const begun_at = iso(clock.now())
  const settle = (outcome: { readonly status: number | null; readonly error: string | null }): Promise<void> => {
    const now_ms = clock.now()
    const done = outcome.status !== null && outcome.status >= 200 && outcome.status < 300
    const next_ms = now_ms + delayMs(attempts)
    const over = endpoint?.deleted_at !== null || next_ms > Date.parse(delivery.expires_at)
    return settleDelivery(state.db, delivery, {
      state: done ? 'delivered' : over ? 'failed' : 'pending',
      attempts,
      last_status: outcome.status,
      last_error: outcome.error,
      last_attempt_at: begun_at,
      delivered_at: done ? iso(now_ms) : null,
      next_attempt_at: iso(next_ms),
    })
  }
  if (!endpoint || endpoint.deleted_at !== null) return settle({ status: null, error: 'the endpoint was deleted' })
  const result = await http.request({
    url: endpoint.url,
    method: 'POST',
    body: delivery.payload,
    keep_body: 'never',
    headers: {
      'Content-Type': 'application/json',
      'X-Strowger-Event': delivery.event_kind,
      'X-Strowger-Event-ID': delivery.event_id,
      'X-Strowger-Signature': signatureOf(services, endpoint, delivery.payload),
    },
  })
  if (result.ok) {
    const good = result.status >= 200 && result.status < 300
    return settle({ status: result.status, error: good ? null : `answered with ${result.status}` })
  }
  return settle({ status: null, error: `${result.error}: ${result.detail}`.slice(0, 300) })
}

/** Returns the wait before the next attempt: ten seconds, doubled each time up to an hour, plus up to 20 % jitter. */
const delayMs = (attempts: number): number => {
  const base = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(20, attempts - 1))
  return base + randomInt(Math.floor(base / 5))
}

/** Returns `t=<seconds>,v1=<hex>`. While a rotated secret is still valid, a second `v1` is made with it. */
function signatureOf({ clock, settings }: Services, endpoint: WebhookEndpointRow, body: string): string {
  const timestamp = Math.floor(clock.now() / 1000)
  const data = timedSignatureData(timestamp, endpoint.url, body)
  const { secret_sealed, previous_secret_sealed, previous_secret_retires_at } = endpoint
  const overlaps = previous_secret_retires_at !== null && previous_secret_retires_at > iso(clock.now())
  const sealed = [secret_sealed, ...(overlaps && previous_secret_sealed !== null ? [previous_secret_sealed] : [])]
  const signatures = sealed.map(text =>
    createHmac('sha256', unseal(settings.master_key, text)).update(data, 'utf8').digest('hex'),
  )
  return [`t=${timestamp}`, ...signatures.map(hex => `v1=${hex}`)].join(',')
}
