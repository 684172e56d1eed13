import { iso } from '../../core/runtime/clock.ts'
import { appliedState } from '../../core/state/configuration/apply.ts'
import type { Db } from '../../core/state/index.ts'
import type { FieldChange } from '../../core/state/people/audit.ts'
import {
  type AuditFilter,
  type AuditRow,
  countAudit,
  findAudit,
  listAudit,
  nextAuditOfResource,
} from '../../core/state/people/audit.ts'
import { cursorOf, readCursor } from '../http/paging.ts'
import { isRefusal, notFound, type Refusal } from '../http/reply.ts'
import { Count64, Flag, Instant, list, nullable, oneOf, optional, resource, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)

const AuditEvent = resource('AuditEvent', {
  action: Text,
  actor: resource('AuditActor', {
    detail: TextOrNull,
    name: Text,
    type: oneOf('user', 'api_key', 'operator', 'system'),
  }),
  applied: Flag,
  at: Instant,
  category: oneOf('configuration', 'security', 'operator'),
  detail: TextOrNull,
  effective_revision: nullable(Count64),
  from_revision: nullable(Count64),
  id: Text,
  kind: oneOf('trunks', 'numbers', 'credentials', 'seats', 'alerts'),
  request_id: TextOrNull,
  resource: resource('AuditResource', { href: TextOrNull, id: Text, name: Text, type: Text }),
  summary: Text,
  ticket_ref: nullable(Text, {
    description: 'Always null: the platform keeps no tickets. An operator’s reason stands in `detail`.',
  }),
  to_revision: nullable(Count64),
})
type Event = Static<typeof AuditEvent>

export const AuditPage = resource('AuditPage', {
  as_of: Instant,
  data: list(AuditEvent),
  next_cursor: TextOrNull,
  previous_cursor: TextOrNull,
  retention_days: Count64,
  total: Count64,
  total_all: Count64,
})

export const AuditDetail = resource('AuditEventDetail', {
  changes: list(
    resource('FieldChange', {
      after: TextOrNull,
      before: TextOrNull,
      label: Text,
      redacted: Flag,
      unchanged: Type.Boolean({ description: 'Always false: an event lists only the fields that changed.' }),
    }),
  ),
  event: AuditEvent,
  notes: list(Text),
  supersedes_at: nullable(Instant),
  timeline: list(resource('TimelineEntry', { at: Instant, text: Text })),
})

/** The trail is never truncated; the API needs a number, so that it reports a hundred years. */
const RETENTION_DAYS = 36_500
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const DAY_MS = 24 * 60 * 60 * 1000
const RANGES = { '24h': DAY_MS, '7d': 7 * DAY_MS, '30d': 30 * DAY_MS } as const

/** Resources whose revisions signaling nodes report as applied. Other resources take effect when they are saved. */
const REPORTED = new Set(['trunk', 'voice_application'])

async function present(db: Db, row: AuditRow, now_ms: number): Promise<Event> {
  const reported = REPORTED.has(row.resource_type) && row.to_revision !== null
  const applied = reported
    ? await appliedState(db, { id: row.resource_id, revision: row.to_revision ?? 0 }, now_ms)
    : null
  return {
    action: row.action,
    actor: { detail: row.actor_detail, name: row.actor_name, type: row.actor_type },
    applied: applied === null || applied.state === 'applied',
    at: row.at,
    category: row.category,
    detail: row.detail,
    effective_revision: applied?.effective_revision ?? null,
    from_revision: row.from_revision,
    id: row.id,
    kind: row.kind,
    request_id: row.request_id,
    resource: { href: row.resource_href, id: row.resource_id, name: row.resource_name, type: row.resource_type },
    summary: row.summary,
    ticket_ref: null,
    to_revision: row.to_revision,
  }
}

/** The filters and the paging of an audit trail. */
export const AUDIT_QUERY = {
  actor: optional(oneOf('any', 'user', 'api_key', 'operator', 'system')),
  kind: optional(oneOf('any', 'trunks', 'numbers', 'credentials', 'seats', 'alerts')),
  trunk_id: optional(Type.String({ pattern: '^(any|trk_[0-9a-f-]{1,64})$' })),
  range: optional(oneOf('24h', '7d', '30d', 'all')),
  cursor: optional(Type.String({ minLength: 1, maxLength: 512 })),
  limit: optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
}

const query = Type.Object(AUDIT_QUERY, { additionalProperties: false })

function filterOf(asked: Static<typeof query>, now_ms: number): AuditFilter {
  const { actor, kind, trunk_id, range } = asked
  return {
    ...(actor && actor !== 'any' ? { actor_type: actor } : {}),
    ...(kind && kind !== 'any' ? { kind } : {}),
    ...(trunk_id && trunk_id !== 'any' ? { trunk_id } : {}),
    ...(range && range !== 'all' ? { since: iso(now_ms - RANGES[range]) } : {}),
  }
}

/** Reads a page of a trail, newest first. `more` filters it further. */
export async function auditPage(
  db: Db,
  trail: string,
  asked: Static<typeof query>,
  now_ms: number,
  more: AuditFilter = {},
): Promise<Static<typeof AuditPage> | Refusal<'validation_failed'>> {
  const position = readCursor(asked.cursor, ['string', 'number'])
  if (isRefusal(position)) return position
  const filter = { ...filterOf(asked, now_ms), ...more }
  const limit = asked.limit ?? DEFAULT_LIMIT
  const forwards = position?.[0] === 'after'
  const window = position ? { [forwards ? 'after' : 'before']: position[1] } : {}
  const rows = await listAudit(db, trail, filter, { limit: limit + 1, ...window })
  const extra = rows.length > limit
  // The one extra row shows whether there is another page. When paging towards newer rows, it is the newest one.
  const shown = forwards && extra ? rows.slice(1) : rows.slice(0, limit)
  const newest = shown[0]
  const oldest = shown.at(-1)
  const data: Event[] = []
  for (const row of shown) data.push(await present(db, row, now_ms))
  const older = forwards || extra
  const newer = position !== undefined && (forwards ? extra : true)
  return {
    as_of: iso(now_ms),
    data,
    next_cursor: older && oldest ? cursorOf(['before', oldest.position]) : null,
    previous_cursor: newer && newest ? cursorOf(['after', newest.position]) : null,
    retention_days: RETENTION_DAYS,
    total: await countAudit(db, trail, filter),
    total_all: await countAudit(db, trail, {}),
  }
}

/** What was done and who did it. The sentence of an alert has its own full stop. */
const sentenceOf = ({ summary, actor_name }: Pick<AuditRow, 'summary' | 'actor_name'>): string =>
  `${summary.replace(/\.$/, '')}, by ${actor_name}`

/** Presents an event with what it changed and what superseded it. */
export async function auditDetail(db: Db, row: AuditRow, now_ms: number): Promise<Static<typeof AuditDetail>> {
  const event = await present(db, row, now_ms)
  const next = await nextAuditOfResource(db, row)
  const timeline = [
    { at: row.at, text: sentenceOf(row) },
    ...(next ? [{ at: next.at, text: `Superseded: ${sentenceOf(next)}` }] : []),
  ]
  const changes = JSON.parse(row.changes) as FieldChange[]
  const notes = row.detail === null ? [] : [row.detail]
  return { changes, event, notes, supersedes_at: next?.at ?? null, timeline }
}

export const audit = [
  route({
    method: 'get',
    path: '/audit',
    summary: 'Read the audit trail, newest first',
    scope: 'audit:read',
    context: 'organization',
    query,
    replies: { 200: AuditPage },
    async run({ db, caller, query: asked, services }) {
      const page = await auditPage(db, caller.organization_id, asked, services.clock.now())
      return isRefusal(page) ? page : { status: 200, body: page }
    },
  }),

  route({
    method: 'get',
    path: '/audit/{event_id}',
    summary: 'Read an event of the audit trail with what it changed, field by field',
    scope: 'audit:read',
    context: 'organization',
    replies: { 200: AuditDetail },
    async run({ db, caller, params, services }) {
      const row = await findAudit(db, caller.organization_id, params.event_id)
      if (!row) return notFound(`audit event ${params.event_id.slice(0, 60)}`)
      return { status: 200, body: await auditDetail(db, row, services.clock.now()) }
    },
  }),
]
