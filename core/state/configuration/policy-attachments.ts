import type { Selectable } from 'kysely'
import type { Service, ServiceType } from '../../domain/admission/index.ts'
import { newId } from '../../runtime/ids.ts'
import type { Db, PolicyAttachmentTable, Trx } from '../db.ts'
import { readTogether, statement } from '../port.ts'
import { nextConfiguration } from './bump.ts'
import type { PolicyRow } from './policies.ts'

/** Policies and the services that they are attached to. */

export type AttachmentRow = Selectable<PolicyAttachmentTable>

export const listAttachments = (db: Db | Trx, policy_id: string): Promise<AttachmentRow[]> =>
  db
    .selectFrom('policy_attachment')
    .selectAll()
    .where('policy_id', '=', policy_id)
    .orderBy('attached_at')
    .orderBy('id')
    .execute()

export const findAttachment = (
  db: Db | Trx,
  service_type: ServiceType,
  service_id: string,
): Promise<AttachmentRow | undefined> =>
  db
    .selectFrom('policy_attachment')
    .selectAll()
    .where('service_type', '=', service_type)
    .where('service_id', '=', service_id)
    .executeTakeFirst()

/** Reports whether the policy is attached to a trunk of the subaccount or to a subtrunk of such a trunk. */
export async function servesSubaccount(db: Db | Trx, policy_id: string, subaccount_id: string): Promise<boolean> {
  const row = await db
    .selectFrom('policy_attachment')
    .leftJoin('subtrunk', 'subtrunk.id', 'policy_attachment.service_id')
    .innerJoin('trunk', join =>
      join.on(eb =>
        eb.or([eb('trunk.id', '=', eb.ref('subtrunk.trunk_id')), eb('trunk.id', '=', eb.ref('service_id'))]),
      ),
    )
    .select('trunk.id')
    .where('policy_attachment.policy_id', '=', policy_id)
    .where('trunk.subaccount_id', '=', subaccount_id)
    .executeTakeFirst()
  return row !== undefined
}

/** What an attachment says besides its policy. An omitted member keeps its value. */
export interface AttachmentTerms {
  readonly note?: string | null
  /** False refuses the outbound calls of the service. */
  readonly outbound_enabled?: boolean
}

/**
 * Attaches a policy to a service in place of its previous one. Admission reads the rows, so that it holds for the next
 * call; it counts as applied once every live node has the configuration that follows from it.
 */
export async function attachPolicy(
  trx: Trx,
  policy: PolicyRow,
  service: Service,
  now: string,
  { note, outbound_enabled }: AttachmentTerms = {},
): Promise<AttachmentRow> {
  const known = await findAttachment(trx, service.type, service.id)
  const row: AttachmentRow = {
    id: known?.id ?? `pat_${newId.uuid()}`,
    project_id: policy.project_id,
    service_type: service.type,
    service_id: service.id,
    note: note === undefined ? (known?.note ?? null) : note,
    outbound_enabled: (outbound_enabled ?? known?.outbound_enabled !== 0) ? 1 : 0,
    policy_id: policy.id,
    attached_at: known?.policy_id === policy.id ? known.attached_at : now,
    applied_at: null,
    applied_revision: known?.policy_id === policy.id ? known.applied_revision : 0,
    revision: await nextConfiguration(trx),
  }
  return trx
    .insertInto('policy_attachment')
    .values(row)
    .onConflict(conflict => conflict.columns(['service_id', 'service_type']).doUpdateSet(row))
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Detaches a service's policy. Returns false when it had none. */
export async function detachPolicy(trx: Trx, service: Service): Promise<boolean> {
  const result = await trx
    .deleteFrom('policy_attachment')
    .where('service_type', '=', service.type)
    .where('service_id', '=', service.id)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/** Counts, per policy, the services that it is attached to and those that have applied it. */
export async function countAttachments(
  db: Db | Trx,
  policy_ids: readonly string[],
): Promise<Map<string, { attached: number; applied: number }>> {
  if (policy_ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('policy_attachment')
    .select(eb => [
      'policy_id',
      eb.fn.countAll<number>().as('attached'),
      eb.fn.count<number>('applied_at').as('applied'),
    ])
    .where('policy_id', 'in', [...policy_ids])
    .groupBy('policy_id')
    .execute()
  return new Map(rows.map(row => [row.policy_id, { attached: Number(row.attached), applied: Number(row.applied) }]))
}

/** Makes every service of a changed policy apply it again. */
export async function reapplyPolicy(trx: Trx, policy_id: string): Promise<void> {
  const revision = await nextConfiguration(trx)
  const changes = { applied_at: null, revision }
  await trx.updateTable('policy_attachment').set(changes).where('policy_id', '=', policy_id).execute()
}

/** Returns attachments whose service has not applied the policy yet, oldest first. */
export async function unappliedAttachments(db: Db | Trx, limit: number): Promise<readonly AttachmentRow[]> {
  const [rows] = await readTogether(db, UNAPPLIED({ limit }))
  return rows
}

const UNAPPLIED = statement((db, { limit }: { readonly limit: number }) =>
  db.selectFrom('policy_attachment').selectAll().where('applied_at', 'is', null).orderBy('attached_at').limit(limit),
)

/** Marks an attachment as applied, unless it has changed since it was read. */
export async function markApplied(db: Db | Trx, { id, revision }: AttachmentRow, applied_at: string): Promise<void> {
  await db
    .updateTable('policy_attachment')
    .set(eb => ({
      applied_at,
      // Every change of the policy gives its attachments another configuration revision.
      applied_revision: eb
        .selectFrom('outbound_policy')
        .select('outbound_policy.revision')
        .whereRef('outbound_policy.id', '=', 'policy_attachment.policy_id')
        .$asScalar()
        .$notNull(),
    }))
    .where('id', '=', id)
    .where('revision', '=', revision)
    .execute()
}

/**
 * Counts the live outbound calls of a service that is not a trunk or subtrunk: of an application, or the project's
 * automation.
 */
export async function liveVoiceCalls(db: Db | Trx, project_id: string, service_id: string): Promise<number> {
  const row = await db
    .selectFrom('lease')
    .innerJoin('call', 'call.sid', 'lease.call_sid')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('lease.ended_at', 'is', null)
    .where('lease.part', '=', 'outbound')
    .where('lease.trunk_id', 'is', null)
    .where('lease.project_id', '=', project_id)
    .where(eb => eb.fn.coalesce('call.application_id', 'lease.project_id'), '=', service_id)
    .executeTakeFirst()
  return Number(row?.count ?? 0)
}
