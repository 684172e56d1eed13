import { type Resolution, WHY_ACKNOWLEDGED } from '../../core/domain/alerts/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type AlertRow, changeAlert } from '../../core/state/alerts/alerts.ts'
import { queueEvent } from '../../core/state/delivery/webhook-endpoints.ts'
import type { Trx } from '../../core/state/index.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import { type Change, type Refusal, refuse } from '../http/reply.ts'
import { presentAlert } from '../v1/alert-present.ts'
import { tellAlert } from './tell.ts'

interface Acknowledgement {
  /** What the customer reads. */
  readonly by: string
  readonly now_ms: number
  readonly base_url: string
}

/**
 * Acknowledges an alert and tells it. An alert whose rule is `acknowledged_or_24h` is resolved by it. Returns the alert
 * unchanged when somebody has acknowledged it before.
 */
export async function acknowledge(
  trx: Trx,
  alert: AlertRow,
  { by, now_ms, base_url }: Acknowledgement,
): Promise<AlertRow | Refusal<'state_conflict'>> {
  if (alert.state === 'resolved') return refuse('state_conflict', { name: `alert ${alert.id}`, value: alert.state })
  if (alert.state === 'acknowledged') return alert
  const now = iso(now_ms)
  const acknowledged = { state: 'acknowledged' as const, acknowledged_at: now, acknowledged_by: by }
  const resolved = (await rule(trx, alert)) === 'acknowledged_or_24h'
  const ended = { state: 'resolved' as const, resolved_at: now, resolved_why: WHY_ACKNOWLEDGED }
  const row = await changeAlert(trx, alert.id, resolved ? { ...acknowledged, ...ended } : acknowledged, now)
  if (!row) return refuse('state_conflict', { name: `alert ${alert.id}`, value: 'resolved' })
  await queueEvent(trx, { project_id: alert.project_id, kind: 'alert.acknowledged', data: presentAlert(row) }, now_ms)
  if (!resolved) return row
  const organization = await findOrganization(trx, alert.organization_id)
  await tellAlert(trx, row, 'alert.resolved', { time_zone: organization?.time_zone ?? 'UTC', now_ms, base_url })
  return row
}

export const acknowledgedChange = (row: AlertRow): Change => ({
  resource: { type: 'alert', id: row.id, name: row.kind, href: null },
  summary: `Acknowledged: ${row.reason}`,
  before: null,
  after: null,
  trunk_id: row.trunk_id,
})

async function rule(trx: Trx, alert: AlertRow): Promise<Resolution['rule'] | null> {
  const row = await trx
    .selectFrom('alert_policy')
    .select('resolution')
    .where('id', '=', alert.policy_id ?? '')
    .where('revision', '=', alert.policy_revision ?? 0)
    .executeTakeFirst()
  return row ? (JSON.parse(row.resolution) as Resolution).rule : null
}
