import { EVENT_KINDS } from '../../core/domain/webhooks/kinds.ts'
import { parseTarget, wrongTarget } from '../../core/domain/webhooks/target.ts'
import { newId } from '../../core/runtime/ids.ts'
import { seal } from '../../core/runtime/secrets.ts'
import {
  findDelivery,
  insertDelivery,
  insertEndpoint,
  listDeliveries,
  listEndpoints,
  saveEndpoint,
  type WebhookDeliveryRow,
  type WebhookEndpointRow,
} from '../../core/state/delivery/webhook-endpoints.ts'
import { pageBefore, pageQuery } from '../http/paging.ts'
import { type Change, invalid, notFound, refuse } from '../http/reply.ts'
import {
  Count64,
  Flag,
  HttpUrl,
  Instant,
  input,
  line,
  list,
  listOf,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const EventKind = oneOf(...EVENT_KINDS)

const fields = {
  id: Type.String(),
  url: Type.String(),
  description: nullable(Type.String()),
  event_kinds: list(EventKind),
  enabled: Flag,
  previous_secret_retires_at: nullable(Instant),
  revision: Count64,
  created_at: Instant,
  updated_at: Instant,
}

const Endpoint = resource('WebhookEndpoint', fields)
const EndpointCreation = resource('WebhookEndpointCreation', {
  endpoint: Endpoint,
  signing_secret: nullable(Type.String()),
})
type Shown = Static<typeof Endpoint>

const Delivery = resource('WebhookDelivery', {
  id: Type.String(),
  event_id: Type.String(),
  event_kind: Type.String(),
  state: oneOf('pending', 'delivered', 'failed'),
  attempts: Count64,
  next_attempt_at: nullable(Instant),
  last_attempt_at: nullable(Instant),
  last_status: nullable(Type.Integer()),
  last_error: nullable(Type.String()),
  delivered_at: nullable(Instant),
  payload: Type.Record(Type.String(), Type.Unknown()),
  created_at: Instant,
})

const MAX_ENDPOINTS = 20
const MAX_PAGE = 200

export const presentEndpoint = (row: WebhookEndpointRow): Shown => ({
  id: row.id,
  url: row.url,
  description: row.description,
  event_kinds: JSON.parse(row.event_kinds) as Shown['event_kinds'],
  enabled: row.enabled === 1,
  previous_secret_retires_at: row.previous_secret_retires_at,
  revision: row.revision,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

const presentDelivery = (row: WebhookDeliveryRow): Static<typeof Delivery> => ({
  id: row.id,
  event_id: row.event_id,
  event_kind: row.event_kind,
  state: row.state,
  attempts: row.attempts,
  next_attempt_at: row.state === 'pending' ? row.next_attempt_at : null,
  last_attempt_at: row.last_attempt_at,
  last_status: row.last_status,
  last_error: row.last_error,
  delivered_at: row.delivered_at,
  payload: JSON.parse(row.payload) as Record<string, unknown>,
  created_at: row.created_at,
})

export const endpointChange = (
  summary: string,
  row: WebhookEndpointRow,
  before: Shown | null,
  after: Shown | null,
): Change => ({
  resource: { type: 'webhook_endpoint', id: row.id, name: row.url, href: `/v1/webhook-endpoints/${row.id}` },
  summary,
  before,
  after,
  from_revision: before?.revision ?? null,
  to_revision: row.revision,
})

/** Returns `whsec_` and 32 random letters and digits. It is shown once and stored encrypted, because it signs. */
export const newSigningSecret = (): string => `whsec_${newId.password()}${newId.password().slice(0, 8)}`

const settings = {
  url: HttpUrl,
  description: optional(nullable(line(240, 0))),
  event_kinds: Type.Array(EventKind, { minItems: 1, uniqueItems: true }),
  enabled: optional(Flag),
}

/** Refuses a malformed URL, and user info in it: that would leak into logs and answers. Signatures authenticate us. */
function badUrl(url: string) {
  const wrong = wrongTarget(url)
  if (wrong !== null) return invalid('/url', wrong)
  const parsed = parseTarget(url)
  return parsed.ok && parsed.target.credentials ? invalid('/url', 'must not have a user name or password') : null
}

const ONE = '/webhook-endpoints/{endpoint_id}'

export const webhookEndpoints = [
  route({
    method: 'get',
    path: '/webhook-endpoints',
    summary: 'List the webhook endpoints of the project',
    scope: 'developers:manage',
    replies: { 200: listOf(Endpoint) },
    async run({ db, project }) {
      return { status: 200, body: { data: (await listEndpoints(db, project.id)).map(presentEndpoint) } }
    },
  }),

  route({
    method: 'post',
    path: '/webhook-endpoints',
    summary: 'Create a webhook endpoint; its signing secret is in this answer alone',
    scope: 'developers:manage',
    idempotent: true,
    audit: { kind: 'credentials', action: 'webhook_endpoint.created' },
    body: input('CreateWebhookEndpointRequest', settings),
    replies: { 201: EndpointCreation },
    refusals: ['limit_reached'],
    for_replay: (body: Static<typeof EndpointCreation>) => ({ ...body, signing_secret: null }),
    example: { url: 'https://app.example.com/strowger', event_kinds: ['call.ended'] },
    async run({ db, project, body, now, services }) {
      const bad = badUrl(body.url)
      if (bad) return bad
      const known = await listEndpoints(db, project.id)
      if (known.length >= MAX_ENDPOINTS) return refuse('limit_reached', { value: known.length, limit: MAX_ENDPOINTS })
      const signing_secret = newSigningSecret()
      const row: WebhookEndpointRow = {
        id: `whe_${newId.uuid()}`,
        project_id: project.id,
        url: body.url,
        description: body.description ?? null,
        event_kinds: JSON.stringify(body.event_kinds),
        enabled: body.enabled === false ? 0 : 1,
        secret_sealed: seal(services.settings.master_key, signing_secret),
        previous_secret_sealed: null,
        previous_secret_retires_at: null,
        revision: 1,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      }
      await insertEndpoint(db, row)
      const endpoint = presentEndpoint(row)
      return {
        status: 201,
        revision: 1,
        headers: { Location: `/v1/webhook-endpoints/${row.id}` },
        body: { endpoint, signing_secret },
        change: endpointChange(`Created webhook endpoint ${row.url}`, row, null, endpoint),
      }
    },
  }),

  route({
    method: 'get',
    path: ONE,
    summary: 'Read a webhook endpoint',
    scope: 'developers:manage',
    replies: { 200: Endpoint },
    async run({ endpoint }) {
      return { status: 200, revision: endpoint.revision, body: presentEndpoint(endpoint) }
    },
  }),

  route({
    method: 'patch',
    path: ONE,
    summary: 'Change a webhook endpoint',
    scope: 'developers:manage',
    if_match: 'endpoint',
    audit: { kind: 'credentials', action: 'webhook_endpoint.updated' },
    body: input('UpdateWebhookEndpointRequest', {
      ...settings,
      url: optional(settings.url),
      event_kinds: optional(settings.event_kinds),
    }),
    replies: { 200: Endpoint },
    async run({ db, endpoint, body, now }) {
      const bad = body.url === undefined ? null : badUrl(body.url)
      if (bad) return bad
      const before = presentEndpoint(endpoint)
      const { event_kinds, enabled, ...rest } = body
      const saved = await saveEndpoint(
        db,
        endpoint,
        {
          ...rest,
          ...(event_kinds ? { event_kinds: JSON.stringify(event_kinds) } : {}),
          ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
        },
        now,
      )
      const after = presentEndpoint(saved)
      const change = endpointChange(`Saved webhook endpoint ${saved.url}`, saved, before, after)
      return { status: 200, revision: saved.revision, body: after, change }
    },
  }),

  route({
    method: 'delete',
    path: ONE,
    summary: 'Delete a webhook endpoint; undelivered events are dropped',
    scope: 'developers:manage',
    if_match: 'endpoint',
    audit: { kind: 'credentials', action: 'webhook_endpoint.deleted' },
    replies: { 204: null },
    async run({ db, endpoint, now }) {
      const gone = await saveEndpoint(db, endpoint, { deleted_at: now, enabled: 0 }, now)
      const before = presentEndpoint(endpoint)
      return { status: 204, change: endpointChange(`Deleted webhook endpoint ${endpoint.url}`, gone, before, null) }
    },
  }),

  route({
    method: 'get',
    path: `/webhook-endpoints/{endpoint_id}/deliveries`,
    summary: 'List the deliveries to an endpoint, newest first',
    scope: 'developers:manage',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: {
      200: pageSchema(Delivery),
    },
    run: ({ db, endpoint, query }) =>
      pageBefore(query, { read: window => listDeliveries(db, endpoint.id, window), present: presentDelivery }),
  }),

  route({
    method: 'post',
    path: `/webhook-endpoints/{endpoint_id}/test`,
    summary: 'Send a test event to an endpoint',
    scope: 'developers:manage',
    idempotent: true,
    audit: { kind: 'credentials', action: 'webhook_endpoint.tested' },
    replies: { 201: Delivery },
    async run({ db, endpoint, services }) {
      const event_id = `evt_${newId.uuid()}`
      const created_at = new Date(services.clock.now()).toISOString()
      const data = { endpoint_id: endpoint.id }
      const payload = JSON.stringify({ id: event_id, kind: 'endpoint.test', created_at, data })
      const event = { event_id, event_kind: 'endpoint.test', payload }
      const row = await insertDelivery(db, endpoint, event, services.clock.now())
      const shown = presentEndpoint(endpoint)
      return {
        status: 201,
        body: presentDelivery(row),
        change: endpointChange(`Sent a test event to ${endpoint.url}`, endpoint, shown, shown),
        wake: ['outbox'] as const,
      }
    },
  }),

  route({
    method: 'post',
    path: `/webhook-endpoints/{endpoint_id}/deliveries/{delivery_id}/redeliver`,
    summary: 'Send an event again, with the id that it had',
    scope: 'developers:manage',
    idempotent: true,
    audit: { kind: 'credentials', action: 'webhook_delivery.redelivered' },
    replies: { 201: Delivery },
    refusals: ['state_conflict'],
    async run({ db, endpoint, params, services }) {
      const old = await findDelivery(db, endpoint.id, params.delivery_id)
      if (!old) return notFound(`delivery ${params.delivery_id.slice(0, 60)}`)
      if (old.state === 'pending') return refuse('state_conflict', { name: `delivery ${old.id}`, value: 'pending' })
      const row = await insertDelivery(db, endpoint, old, services.clock.now())
      const shown = presentEndpoint(endpoint)
      return {
        status: 201,
        body: presentDelivery(row),
        change: endpointChange(`Redelivered event ${old.event_id}`, endpoint, shown, shown),
        wake: ['outbox'] as const,
      }
    },
  }),
]
