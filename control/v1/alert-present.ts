import { type AlertKind, isOfMoney, mayBeSeen } from '../../core/domain/alerts/index.ts'
import { ALERT_CHANNELS, ALERT_KINDS, RESOLUTION_RULES, SUBJECT_TYPES } from '../../core/domain/alerts/types.ts'
import type { AlertPolicyRow } from '../../core/state/alerts/alert-policies.ts'
import type { AlertRow } from '../../core/state/alerts/alerts.ts'
import {
  type ContainmentRow,
  listReleaseRequests,
  type ReleaseRequestRow,
} from '../../core/state/alerts/containments.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { mayUse } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import {
  Count64,
  Flag,
  Instant,
  Int32,
  Int64,
  list,
  nullable,
  oneOf,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)
const InstantOrNull = nullable(Instant)
const Uuid = Type.String({ format: 'uuid' })

const Kind = oneOf(...ALERT_KINDS)
export const AlertChannel = oneOf(...ALERT_CHANNELS)
export const SubjectKind = oneOf(...SUBJECT_TYPES)
export const ResolutionRule = oneOf(...RESOLUTION_RULES)

export const Alert = resource('Alert', {
  acknowledged_at: InstantOrNull,
  acknowledged_by: TextOrNull,
  channels: list(AlertChannel),
  containment_id: nullable(Uuid),
  dedupe_key: Text,
  evidence: list(
    resource('AlertEvidence', {
      amount_minor: nullable(Int64),
      currency: TextOrNull,
      held: Flag,
      label: Text,
      note: TextOrNull,
      text: TextOrNull,
    }),
  ),
  fired_at: Instant,
  id: Text,
  kind: Kind,
  policy_id: TextOrNull,
  policy_revision: nullable(Count64),
  reason: Text,
  remediation: Text,
  resolved_at: InstantOrNull,
  severity: oneOf('critical', 'warning', 'info'),
  source_state: oneOf('measured', 'data_unavailable'),
  state: oneOf('firing', 'acknowledged', 'resolved'),
  subject: resource('AlertSubject', { id: Text, name: Text, type: SubjectKind }),
  suggested_actions: list(resource('SuggestedAction', { href: Text, label: Text })),
  trunk_id: TextOrNull,
})

export const presentAlert = (row: AlertRow): Static<typeof Alert> => ({
  acknowledged_at: row.acknowledged_at,
  acknowledged_by: row.acknowledged_by,
  channels: JSON.parse(row.channels),
  containment_id: row.containment_id,
  dedupe_key: row.dedupe_key,
  evidence: JSON.parse(row.evidence),
  fired_at: row.fired_at,
  id: row.id,
  kind: row.kind,
  policy_id: row.policy_id,
  policy_revision: row.policy_revision,
  reason: row.reason,
  remediation: row.remediation,
  resolved_at: row.resolved_at,
  severity: row.severity,
  source_state: row.source_state,
  state: row.state,
  subject: { id: row.subject_id, name: row.subject_name, type: row.subject_type },
  suggested_actions: JSON.parse(row.suggested_actions),
  trunk_id: row.trunk_id,
})

/** Reports whether a caller sees alerts of a kind: about money with access to bills, others with configuration. */
export const seesAlerts = (kind: AlertKind, caller: Caller): boolean =>
  mayBeSeen(kind, caller.role) &&
  (mayUse(caller, 'service_configuration:read') || (isOfMoney(kind) && mayUse(caller, 'billing:read')))

const AmountOrNull = nullable(Int64)

export const AlertPolicy = resource('AlertPolicy', {
  channels: list(AlertChannel),
  enabled: Flag,
  id: Text,
  kind: Kind,
  platform_ceiling_minor: AmountOrNull,
  platform_ceiling_window_seconds: nullable(Int32),
  resolution: resource('AlertResolution', {
    amount_minor: AmountOrNull,
    count: nullable(Int32),
    currency: TextOrNull,
    for_seconds: nullable(Int32),
    percent: TextOrNull,
    rule: ResolutionRule,
  }),
  revision: Count64,
  scope: resource('AlertScope', { id: TextOrNull, label: Text, type: SubjectKind }),
  threshold: resource('AlertThreshold', {
    amount_minor: AmountOrNull,
    currency: TextOrNull,
    min_events: nullable(Int32),
    percent: TextOrNull,
    window_seconds: nullable(Int32),
  }),
  updated_at: Instant,
  updated_by: Text,
})

export const presentAlertPolicy = (row: AlertPolicyRow): Static<typeof AlertPolicy> => ({
  channels: JSON.parse(row.channels),
  enabled: row.enabled === 1,
  id: row.id,
  kind: row.kind,
  platform_ceiling_minor: row.platform_ceiling_minor,
  platform_ceiling_window_seconds: row.platform_ceiling_window_seconds,
  resolution: JSON.parse(row.resolution),
  revision: row.revision,
  scope: JSON.parse(row.scope),
  threshold: JSON.parse(row.threshold),
  updated_at: row.updated_at,
  updated_by: row.updated_by,
})

export const ReleaseRequest = resource('ContainmentReleaseRequest', {
  decision_at: InstantOrNull,
  decision_by: TextOrNull,
  decision_reason: TextOrNull,
  id: Uuid,
  note: Text,
  requested_at: Instant,
  requested_by: Text,
  state: oneOf('pending', 'approved', 'rejected'),
})

export const Containment = resource('Containment', {
  case_ref: Text,
  expires_at: Instant,
  id: Uuid,
  notified_at: InstantOrNull,
  notified_event: TextOrNull,
  prefix: Text,
  reason_category: oneOf('spend_velocity', 'destination_risk', 'account_compromise'),
  reason_detail: Text,
  rejection_code: oneOf('DESTINATION_CONTAINED'),
  rejection_count: Count64,
  release_request: nullable(ReleaseRequest),
  released_at: InstantOrNull,
  released_by: TextOrNull,
  source_alert_id: TextOrNull,
  starts_at: Instant,
  trunk_id: TextOrNull,
  trunk_name: TextOrNull,
})

export const presentRequest = ({ containment_id: _, ...row }: ReleaseRequestRow): Static<typeof ReleaseRequest> => row

/** Presents a containment. One without a trunk closes the prefix for every service of the project. */
const presentContainment = (
  row: ContainmentRow,
  trunk_name: string | null,
  request: ReleaseRequestRow | undefined,
): Static<typeof Containment> => ({
  case_ref: row.case_ref,
  expires_at: row.expires_at,
  id: row.id,
  notified_at: row.notified_at,
  notified_event: row.notified_event,
  prefix: `+${row.prefix}`,
  reason_category: row.reason_category,
  reason_detail: row.reason_detail,
  rejection_code: 'DESTINATION_CONTAINED',
  rejection_count: row.rejection_count,
  release_request: request ? presentRequest(request) : null,
  released_at: row.released_at,
  released_by: row.released_by,
  source_alert_id: row.source_alert_id,
  starts_at: row.starts_at,
  trunk_id: row.trunk_id,
  trunk_name,
})

export async function presentContainments(
  db: Db | Trx,
  rows: readonly ContainmentRow[],
): Promise<Static<typeof Containment>[]> {
  const trunk_ids = [...new Set(rows.flatMap(row => row.trunk_id ?? []))]
  const trunks =
    trunk_ids.length === 0
      ? []
      : await db.selectFrom('trunk').select(['id', 'name']).where('id', 'in', trunk_ids).execute()
  const names = new Map(trunks.map(trunk => [trunk.id, trunk.name]))
  const requests = await listReleaseRequests(
    db,
    rows.map(row => row.id),
  )
  return rows.map(row => presentContainment(row, names.get(row.trunk_id ?? '') ?? null, requests.get(row.id)))
}
