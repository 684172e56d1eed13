import type { AlertKind, AlertSeverity, AlertSourceState, AlertState, SubjectType } from '../../domain/alerts/types.ts'
import type { Flag, Instant, Json } from './configuration.ts'

/** One revision of a policy; rows are never changed but for `newest`. */
export interface AlertPolicyTable {
  id: string
  revision: number
  organization_id: string
  kind: AlertKind
  enabled: Flag
  /** JSON list of channels. */
  channels: Json
  scope: Json
  threshold: Json
  resolution: Json
  platform_ceiling_minor: number | null
  platform_ceiling_window_seconds: number | null
  newest: Flag
  updated_at: Instant
  updated_by: string
}

export interface AlertTable {
  id: string
  organization_id: string
  project_id: string
  kind: AlertKind
  severity: AlertSeverity
  state: AlertState
  source_state: AlertSourceState
  policy_id: string | null
  policy_revision: number | null
  /** At most one alert of a key is open. */
  dedupe_key: string
  reason: string
  remediation: string
  subject_type: SubjectType
  subject_id: string
  subject_name: string
  trunk_id: string | null
  containment_id: string | null
  /** JSON list of evidence items. */
  evidence: Json
  /** JSON list of {href, label}. */
  suggested_actions: Json
  /** JSON list of the channels that received the alert. */
  channels: Json
  fired_at: Instant
  acknowledged_at: Instant | null
  acknowledged_by: string | null
  resolved_at: Instant | null
  resolved_why: string | null
  /** Since when the condition no longer holds; null while it does. */
  below_since: Instant | null
  /** Good looks in a row, for `consecutive_successes`. */
  successes: number
  /** Revision of the subject, or time in ms of the evidence, that was counted last. */
  version: number | null
  updated_at: Instant
}

/** The recipients of a project's alerts, and its quiet hours. A project without a row has the defaults. */
export interface AlertSettingTable {
  project_id: string
  /** JSON list; null: the organization's admins and engineers. */
  email_recipients: Json | null
  sms_recipients: Json
  /** HH:MM in the organization's time zone; null: never quiet. */
  quiet_from: string | null
  quiet_to: string | null
  revision: number
  updated_at: Instant
}

/** A message to somebody, delivered at least once. */
export interface AlertNotificationTable {
  id: string
  project_id: string
  alert_id: string
  event: 'alert.fired' | 'alert.resolved'
  channel: 'email' | 'sms'
  recipient: string
  subject: string
  body: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  next_attempt_at: Instant
  lease_until: Instant | null
  last_error: string | null
  created_at: Instant
  delivered_at: Instant | null
}

/** Where a trunk's calls go: `prefix` is that of the rate that priced them. */
export interface DestinationProfileTable {
  trunk_id: string
  prefix: string
  project_id: string
  first_seen_at: Instant
  last_seen_at: Instant
  /** Day of the organization's time zone in whose first five hours there was a call last. */
  last_night: string | null
  /** On how many nights there were calls. */
  nights: number
}

/** From where a trunk's calls come. */
export interface TrunkSourceSeenTable {
  trunk_id: string
  address: string
  project_id: string
  first_seen_at: Instant
  last_seen_at: Instant
  calls: number
}

/** How far a background reader of calls has come. */
export interface AlertCursorTable {
  name: string
  position: number
}
