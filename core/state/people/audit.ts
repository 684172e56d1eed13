import { counted } from '../../domain/text/counted.ts'
import type { AuditActorType, AuditEventTable, AuditKind, Db, Trx } from '../db.ts'
import { queueProcedure } from '../port.ts'
import { FIRST_HASH, hashOf, type UnchainedEvent } from '../procedures/audit-chain.ts'

/** Stands in place of an organization for the installation's own trail: every write of an operator. */
export const INSTALLATION = 'installation'

export interface AuditActor {
  readonly type: AuditActorType
  readonly id: string | null
  readonly name: string
  readonly detail: string | null
}

/** An operator in the trail of a customer, who learns what was done, not who did it. */
export const ANY_OPERATOR: AuditActor = { type: 'operator', id: null, name: 'Operator', detail: null }

export interface FieldChange {
  readonly label: string
  readonly before: string | null
  readonly after: string | null
  readonly redacted: boolean
  readonly unchanged: boolean
}

export interface NewAuditEvent {
  readonly id: string
  readonly organization_id: string
  readonly project_id: string | null
  readonly at: string
  readonly actor: AuditActor
  readonly category: AuditEventTable['category']
  readonly kind: AuditKind
  readonly action: string
  readonly summary: string
  readonly detail: string | null
  readonly resource: { readonly type: string; readonly id: string; readonly name: string; readonly href: string | null }
  readonly trunk_id: string | null
  readonly from_revision: number | null
  readonly to_revision: number | null
  readonly request_id: string | null
  readonly changes: readonly FieldChange[]
}

export type AuditRow = Omit<AuditEventTable, 'position'> & { readonly position: number }

/** Appends an event to its organization's chain, in the transaction of the change that it records. */
export const appendAudit = (trx: Trx, event: NewAuditEvent): Promise<void> =>
  queueProcedure(trx, 'append_audit', unchained(event))

const unchained = (event: NewAuditEvent): UnchainedEvent => ({
  id: event.id,
  organization_id: event.organization_id,
  project_id: event.project_id,
  at: event.at,
  actor_type: event.actor.type,
  actor_id: event.actor.id,
  actor_name: event.actor.name,
  actor_detail: event.actor.detail,
  category: event.category,
  kind: event.kind,
  action: event.action,
  summary: event.summary,
  detail: event.detail,
  resource_type: event.resource.type,
  resource_id: event.resource.id,
  resource_name: event.resource.name,
  resource_href: event.resource.href,
  trunk_id: event.trunk_id,
  from_revision: event.from_revision,
  to_revision: event.to_revision,
  request_id: event.request_id,
  changes: JSON.stringify(event.changes),
})

type ChainCheck =
  | { readonly intact: true; readonly events: number; readonly head: string }
  | { readonly intact: false; readonly events: number; readonly event_id: string | null; readonly why: string }

const BATCH = 500

/**
 * Verifies an organization's chain from its first event to its last. Detects changed, removed, inserted and moved
 * events, and events cut off at the end. An attacker who can write the database can rebuild the whole chain. To detect
 * that, store `head` elsewhere and pass it later as `expected`.
 */
export async function verifyChain(db: Db, organization_id: string, expected?: string): Promise<ChainCheck> {
  // Read first, so that events appended during the walk come after it.
  const end = await db
    .selectFrom('audit_head')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .executeTakeFirst()
  let previous = FIRST_HASH
  let position = 0
  let events = 0
  let met = expected === undefined || expected === FIRST_HASH
  const broken = (event_id: string | null, why: string) => ({ intact: false, events, event_id, why }) as const
  for (;;) {
    const rows = await eventsAfter(db, organization_id, position)
    for (const row of rows) {
      events += 1
      if (row.previous_hash !== previous) return broken(row.id, 'an event before this one was removed, added or moved')
      if (row.hash !== hashOf(row)) return broken(row.id, 'this event was changed')
      if (events === end?.events && row.hash !== end.hash) return broken(row.id, 'the chain should end otherwise here')
      if (row.hash === expected) met = true
      previous = row.hash
      position = row.position
    }
    if (rows.length === BATCH) continue
    const missing = (end?.events ?? 0) - events
    if (missing > 0)
      return broken(
        null,
        `${counted(missing, 'event after the last one was', 'events after the last one were')} removed`,
      )
    if (events > 0 && !end) return broken(null, 'the record of where the chain ends was removed')
    if (!met) return broken(null, 'the expected hash is not in it: it was chained anew, or is another one')
    return { intact: true, events, head: previous }
  }
}

const eventsAfter = (db: Db, organization_id: string, position: number): Promise<AuditRow[]> =>
  db
    .selectFrom('audit_event')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('position', '>', position)
    .orderBy('position')
    .limit(BATCH)
    .execute()

/** Lists the audit trails: the installation's own, then each organization's. */
export async function auditTrails(db: Db): Promise<{ readonly id: string; readonly name: string }[]> {
  const organizations = await db
    .selectFrom('organization')
    .select(['id', 'name'])
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return [{ id: INSTALLATION, name: 'Installation' }, ...organizations]
}

export interface AuditFilter {
  readonly actor_type?: AuditActorType
  readonly kind?: AuditKind
  readonly trunk_id?: string
  readonly since?: string
  readonly actor_name?: string
  readonly action?: string
}

/** Lists a page of an organization's events, newest first. `before` and `after` are exclusive positions. */
export async function listAudit(
  db: Db,
  organization_id: string,
  filter: AuditFilter,
  page: { readonly limit: number; readonly before?: number; readonly after?: number },
): Promise<AuditRow[]> {
  let query = filtered(db, organization_id, filter).selectAll()
  if (page.before !== undefined) query = query.where('position', '<', page.before)
  if (page.after !== undefined) {
    const rows = await query.where('position', '>', page.after).orderBy('position').limit(page.limit).execute()
    return rows.reverse()
  }
  return query.orderBy('position', 'desc').limit(page.limit).execute()
}

export async function countAudit(db: Db, organization_id: string, filter: AuditFilter): Promise<number> {
  const row = await filtered(db, organization_id, filter)
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

export async function findAudit(db: Db, organization_id: string, id: string): Promise<AuditRow | undefined> {
  return db
    .selectFrom('audit_event')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** The latest events about these resources, oldest first, up to an instant; null: up to now. */
export async function auditOfResources(
  db: Db,
  organization_id: string,
  { resource_ids, until }: { readonly resource_ids: readonly string[]; readonly until: string | null },
): Promise<AuditRow[]> {
  const query = db
    .selectFrom('audit_event')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('resource_id', 'in', resource_ids)
    .orderBy('position', 'desc')
    .limit(MOST_OF_RESOURCES)
  const rows = await (until === null ? query : query.where('at', '<=', until)).execute()
  return rows.reverse()
}

const MOST_OF_RESOURCES = 200

/** Finds an event of any trail. For operators. */
export const findAnyAudit = (db: Db, id: string): Promise<AuditRow | undefined> =>
  db.selectFrom('audit_event').selectAll().where('id', '=', id).executeTakeFirst()

/** Finds the next event on the same resource, which superseded this one. */
export async function nextAuditOfResource(db: Db, event: AuditRow): Promise<AuditRow | undefined> {
  return db
    .selectFrom('audit_event')
    .selectAll()
    .where('organization_id', '=', event.organization_id)
    .where('resource_type', '=', event.resource_type)
    .where('resource_id', '=', event.resource_id)
    .where('position', '>', event.position)
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()
}

function filtered(db: Db, organization_id: string, filter: AuditFilter) {
  let query = db.selectFrom('audit_event').where('organization_id', '=', organization_id)
  if (filter.actor_type) query = query.where('actor_type', '=', filter.actor_type)
  if (filter.kind) query = query.where('kind', '=', filter.kind)
  if (filter.trunk_id) query = query.where('trunk_id', '=', filter.trunk_id)
  if (filter.since) query = query.where('at', '>=', filter.since)
  if (filter.actor_name) query = query.where('actor_name', '=', filter.actor_name)
  if (filter.action) query = query.where('action', '=', filter.action)
  return query
}
