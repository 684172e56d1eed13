import type { Tables } from '../create-tables.ts'

/** Alerts, the facts that they are judged by, and containments. */
export const ALERTS: Tables = {
  alert: {
    key: 'id',
    columns:
      'id organization_id project_id kind severity state source_state policy_id? dedupe_key reason ' +
      'remediation subject_type subject_id subject_name trunk_id? containment_id? evidence suggested_actions ' +
      'channels fired_at acknowledged_at? acknowledged_by? resolved_at? resolved_why? below_since? updated_at ' +
      'policy_revision:int? successes:int version:int?',
    indexes: {
      alert_project: 'project_id fired_at',
    },
    unique: {
      alert_open: ['dedupe_key', 'resolved_at is null'],
    },
  },
  alert_policy: {
    key: 'id revision',
    columns:
      'id organization_id kind channels scope threshold resolution updated_at updated_by revision:int ' +
      'newest:int enabled:int platform_ceiling_minor:int? platform_ceiling_window_seconds:int?',
    unique: {
      alert_policy_newest: ['organization_id kind', 'newest = 1'],
    },
  },
  alert_setting: {
    key: 'project_id',
    columns: 'project_id email_recipients? sms_recipients quiet_from? quiet_to? updated_at revision:int',
  },
  alert_notification: {
    key: 'id',
    columns:
      'id project_id alert_id event channel recipient subject body state next_attempt_at lease_until? ' +
      'last_error? created_at delivered_at? attempts:int',
    indexes: {
      alert_notification_alert: 'alert_id',
      alert_notification_waiting: ['next_attempt_at', "state = 'pending'"],
    },
  },
  alert_cursor: {
    key: 'name',
    columns: 'name position:int',
  },
  destination_profile: {
    key: 'trunk_id prefix',
    columns: 'trunk_id prefix project_id first_seen_at last_seen_at last_night? nights:int',
  },
  trunk_source_seen: {
    key: 'trunk_id address',
    columns: 'trunk_id address project_id first_seen_at last_seen_at calls:int',
  },
  containment: {
    key: 'id',
    columns:
      'id project_id trunk_id? prefix case_ref reason_category reason_detail source_alert_id? starts_at ' +
      'expires_at released_at? released_by? notified_at? notified_event? rejection_count:int',
    indexes: {
      containment_prefix: 'project_id prefix',
    },
  },
  containment_release_request: {
    key: 'id',
    columns: 'id containment_id state note requested_at requested_by decision_at? decision_by? decision_reason?',
    indexes: {
      containment_release_request_containment: 'containment_id',
    },
  },
}
