import type { ServiceTraffic } from '../../core/domain/alerts/index.ts'
import type { Proposal } from '../../core/domain/fraud/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type AlertRow, changeAlert } from '../../core/state/alerts/alerts.ts'
import { type ContainmentRow, insertContainment, markNotified } from '../../core/state/alerts/containments.ts'
import { insertCommand } from '../../core/state/calls/calls.ts'
import { queueEvent } from '../../core/state/delivery/webhook-endpoints.ts'
import type { Trx } from '../../core/state/index.ts'
import { appendAudit } from '../../core/state/people/audit.ts'
import { presentContainments } from '../v1/alert-present.ts'
import { type AlertContext, SYSTEM } from './carry-out.ts'

/** How long an automatic containment lasts: people have time to look, and no rule closes a trunk for ever. */
const CONTAINED_FOR_MS = 24 * 3_600_000

export const newCaseRef = (now_ms: number): string =>
  `SEC-${iso(now_ms).slice(0, 10).replaceAll('-', '')}-${newId.uuid().slice(0, 8).toUpperCase()}`

/** Finds a containment in force for a trunk and prefix, or for a shorter prefix that covers it. */
const covering = (trx: Trx, project_id: string, trunk_id: string | null, prefix: string, now: string) =>
  trx
    .selectFrom('containment')
    .selectAll()
    .where('project_id', '=', project_id)
    .where(
      'prefix',
      'in',
      [...prefix].map((_, index) => prefix.slice(0, index + 1)),
    )
    .where('released_at', 'is', null)
    .where('expires_at', '>', now)
    .where(eb => eb.or([eb('trunk_id', 'is', null), eb('trunk_id', '=', trunk_id)]))
    .executeTakeFirst()

/** For this long after a person has released a containment, the same traffic only fires the alert. */
const RESPITE_MS = 3_600_000
const releasedLately = (trx: Trx, project_id: string, trunk_id: string | null, prefix: string, now_ms: number) =>
  trx
    .selectFrom('containment')
    .select('id')
    .where('project_id', '=', project_id)
    .where('trunk_id', trunk_id === null ? 'is' : '=', trunk_id)
    .where('prefix', '=', prefix)
    .where('released_at', '>', iso(now_ms - RESPITE_MS))
    .executeTakeFirst()

/**
 * Closes a prefix of a service automatically and ends its running calls, because every minute of fraud costs money
 * (docs/calls.md). For the voice account it closes the prefix to the whole project (docs/calls.md). Returns undefined
 * when the prefix is already closed or a person has recently released it.
 */
export async function containByItself(
  trx: Trx,
  context: AlertContext,
  { trunk_id }: Pick<ServiceTraffic, 'trunk_id'>,
  proposal: Proposal,
  /** Returns the alert of the containment, and fires it when none is open. */
  alerted: () => Promise<AlertRow>,
): Promise<ContainmentRow | undefined> {
  const { project, now_ms } = context
  const now = iso(now_ms)
  if (await covering(trx, project.id, trunk_id, proposal.prefix, now)) return undefined
  if (await releasedLately(trx, project.id, trunk_id, proposal.prefix, now_ms)) return undefined
  const { id: source_alert_id } = await alerted()
  const row = await openContainment(trx, now_ms, {
    project_id: project.id,
    trunk_id,
    prefix: proposal.prefix,
    case_ref: newCaseRef(now_ms),
    reason_category: proposal.reason_category,
    reason_detail: proposal.reason_detail,
    source_alert_id,
    starts_at: now,
    expires_at: iso(now_ms + CONTAINED_FOR_MS),
  })
  await auditContainment(trx, project, row, now)
  await changeAlert(trx, source_alert_id, { containment_id: row.id }, now)
  const live = await trx
    .selectFrom('call')
    .select('sid')
    .where('project_id', '=', project.id)
    .where(eb => (trunk_id === null ? eb('origin', '!=', 'trunk') : eb('trunk_id', '=', trunk_id)))
    .where('ended_at', 'is', null)
    .where('direction', '!=', 'inbound')
    .where('to_number', 'like', `+${proposal.prefix}%`)
    .limit(5000)
    .execute()
  for (const { sid } of live) await insertCommand(trx, sid, 'hangup', { reason: 'contained' }, now_ms)
  return row
}

/** Opens a containment and writes its notice. The caller audits it. */
export async function openContainment(
  trx: Trx,
  now_ms: number,
  containment: Parameters<typeof insertContainment>[1],
): Promise<ContainmentRow> {
  const made = await insertContainment(trx, containment)
  const notice = { notified_at: iso(now_ms), notified_event: 'containment.opened' }
  await markNotified(trx, made.id, notice)
  const row = { ...made, ...notice }
  await containmentEvent(trx, row, 'containment.opened', now_ms)
  return row
}

/** Queues an event about a containment for the project's webhook endpoints. */
export async function containmentEvent(
  trx: Trx,
  row: ContainmentRow,
  kind: 'containment.opened' | 'containment.released',
  now_ms: number,
): Promise<void> {
  const [data] = await presentContainments(trx, [row])
  if (data) await queueEvent(trx, { project_id: row.project_id, kind, data }, now_ms)
}

/** Records a containment that the platform opened by itself. */
const auditContainment = (trx: Trx, project: Project, row: ContainmentRow, now: string): Promise<void> =>
  appendAudit(trx, {
    id: newId.auditEvent(),
    organization_id: project.organization_id,
    project_id: project.id,
    at: now,
    actor: SYSTEM,
    category: 'security',
    kind: 'alerts',
    action: 'containment.opened',
    summary: `Closed +${row.prefix}`,
    detail: `${row.reason_category}: ${row.reason_detail} (${row.case_ref})`,
    resource: { type: 'containment', id: row.id, name: `+${row.prefix}`, href: `/v1/containments/${row.id}` },
    trunk_id: row.trunk_id,
    from_revision: null,
    to_revision: null,
    request_id: null,
    changes: [],
  })

interface Project {
  readonly id: string
  readonly organization_id: string
}
