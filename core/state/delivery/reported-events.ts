import type { Db, Trx } from '../db.ts'
import type { AuditRow } from '../people/audit.ts'
import { readTogether, statement } from '../port.ts'

/** Returns the audit position up to which events are queued for webhook endpoints; undefined before the first one. */
export async function reportedUpTo(db: Db | Trx, name: string): Promise<number | undefined> {
  const [[row]] = await readTogether(db, REPORTED({ name }))
  return row?.position
}

const REPORTED = statement((db, { name }: { readonly name: string }) =>
  db.selectFrom('told_event').select('position').where('name', '=', name),
)

export async function noteReportedUpTo(trx: Db | Trx, name: string, position: number): Promise<void> {
  await trx
    .insertInto('told_event')
    .values({ name, position })
    .onConflict(conflict => conflict.column('name').doUpdateSet({ position }))
    .execute()
}

/** Returns the newest position of the audit trail, over all organizations. */
export async function lastAuditPosition(db: Db | Trx): Promise<number> {
  const [[row]] = await readTogether(db, LAST_AUDIT({}))
  return Number(row?.position ?? 0)
}

const LAST_AUDIT = statement(db => db.selectFrom('audit_event').select(eb => eb.fn.max('position').as('position')))

const COLUMNS = [
  'position',
  'id',
  'project_id',
  'at',
  'action',
  'summary',
  'resource_type',
  'resource_id',
  'resource_name',
  'resource_href',
  'to_revision',
  'trunk_id',
  'request_id',
] as const

/** Finds the names and revisions of trunks, by id. */
export async function trunksOf(db: Db | Trx, ids: readonly string[]) {
  if (ids.length === 0) return new Map<string, { readonly name: string; readonly revision: number }>()
  const rows = await db
    .selectFrom('trunk')
    .select(['id', 'name', 'revision'])
    .where('id', 'in', [...ids])
    .execute()
  return new Map(rows.map(({ id, ...trunk }) => [id, trunk]))
}

/** An audit event to report to webhook endpoints, of a project that has some. */
export type HeardRow = Pick<AuditRow, (typeof COLUMNS)[number]> & { readonly project_id: string }

/**
 * Returns audit events between two positions, oldest first, of projects with a webhook endpoint. Most writes belong to
 * projects without one and cost nothing here.
 */
export async function heardAudit(db: Db | Trx, after: number, upto: number, limit: number): Promise<HeardRow[]> {
  const rows = await db
    .selectFrom('audit_event')
    .select(COLUMNS)
    .where('position', '>', after)
    .where('position', '<=', upto)
    .where('project_id', 'in', eb =>
      eb
        .selectFrom('webhook_endpoint')
        .select('webhook_endpoint.project_id')
        .where('webhook_endpoint.deleted_at', 'is', null)
        .where('webhook_endpoint.enabled', '=', 1),
    )
    .orderBy('position')
    .limit(limit)
    .execute()
  return rows as HeardRow[]
}
