import type { Generated } from 'kysely'
import type { AlertKind, AlertSeverity, AlertSourceState, AlertState, SubjectType } from '../../domain/alerts/types.ts'
import type { Flag, Instant, JsonText } from './configuration.ts'

/** One revision of a policy. Rows never change except for `newest`. */
export interface AlertPolicyTable {
  id: string
  revision: number
  organization_id: string
  kind: AlertKind
  enabled: Flag
  /** JSON list of channels. */
  channels: JsonText
  scope: JsonText
  threshold: JsonText
  resolution: JsonText
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
  /** At most one alert per key is open. */
  dedupe_key: string
  reason: string
  remediation: string
  subject_type: SubjectType
  subject_id: string
  subject_name: string
  trunk_id: string | null
  containment_id: string | null
  /** JSON list of evidence items. */
  evidence: JsonText
  /** JSON list of {href, label}. */
  suggested_actions: JsonText
  /** JSON list of the channels that received the alert. */
  channels: JsonText
  fired_at: Instant
  acknowledged_at: Instant | null
  acknowledged_by: string | null
  resolved_at: Instant | null
  resolved_why: string | null
  /** Since when the condition no longer holds; null while it does. */
  below_since: Instant | null
  /** Consecutive successful checks, for `consecutive_successes`. */
  successes: number
  /** Revision of the subject, or time of the evidence in ms, at the last counted check. */
  version: number | null
  updated_at: Instant
}

/** The recipients of a project's alerts, and its quiet hours. A project without a row has the defaults. */
export interface AlertSettingTable {
  project_id: string
  /** JSON list; null: the organization's admins and engineers. */
  email_recipients: JsonText | null
  sms_recipients: JsonText
  /** HH:MM in the organization's time zone; null: never quiet. */
  quiet_from: string | null
  quiet_to: string | null
  revision: number
  updated_at: Instant
}

/** A notification to one recipient, delivered at least once. */
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

/** A destination of a trunk's calls. `prefix` is that of the rate that priced them. */
export interface DestinationProfileTable {
  /** A trunk, or the project for its voice account. */
  service_id: string
  prefix: string
  project_id: string
  first_seen_at: Instant
  last_seen_at: Instant
  /** The last day (organization's time zone) with a call in its first five hours. */
  last_night: string | null
  /** Number of nights with calls. */
  nights: number
}

/** A source address of a trunk's calls, or of a stranger who guessed its password. */
export interface TrunkSourceSeenTable {
  trunk_id: string
  address: string
  project_id: string
  first_seen_at: Instant
  last_seen_at: Instant
  calls: number
  /** When a stranger was blocked there after wrong passwords; null for a source of calls alone. */
  blocked_at: Generated<Instant | null>
}

/** The position that a background reader of calls has reached. */
export interface AlertCursorTable {
  name: string
  position: number
}
