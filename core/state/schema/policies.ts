import type { Generated } from 'kysely'
import type { ServiceType } from '../../domain/admission/index.ts'
import type { Flag, Instant, JsonText } from './configuration.ts'

export interface OutboundPolicyTable {
  id: string
  project_id: string
  name: string
  status: 'active' | 'archived'
  /** 1: applies to every service of the project without an attached policy. A project has one. */
  system_default: Flag
  billing_group: string
  concurrency: number | null
  cps: number | null
  daily_spend_limit_minor: number | null
  max_call_duration_seconds: number | null
  /** Minor units per minute. */
  max_destination_rate_minor: number | null
  /** JSON list of CallingWindow; null: calls may begin at any time. */
  calling_hours: JsonText | null
  recording_mode: 'off' | 'all'
  recording_channels: number
  recording_retention_days: number
  revision: number
  created_at: Instant
  created_by: string | null
  updated_at: Instant
}

/** A destination rule. A policy has at most one per kind and value. */
export interface PolicyRuleTable {
  id: string
  policy_id: string
  op: 'allow' | 'deny'
  kind: 'country' | 'prefix'
  /** ISO code of a country, or a prefix as the customer gave it. */
  value: string
  /** Digits to match: the prefix or the country's calling code. */
  prefix: string
  label: string | null
  created_at: Instant
}

/** Attaches a policy to a service. A service has at most one of its own. */
export interface PolicyAttachmentTable {
  id: string
  policy_id: string
  project_id: string
  service_type: ServiceType
  service_id: string
  note: string | null
  outbound_enabled: Flag
  attached_at: Instant
  applied_at: Instant | null
  /** The revision of the policy that every node has applied; 0 before the first. */
  applied_revision: Generated<number>
  /** The configuration revision that puts it in force. */
  revision: Generated<number>
}

export interface SubaccountTable {
  id: string
  project_id: string
  name: string
  status: 'enabled' | 'suspended'
  currency: string
  max_concurrent: number | null
  max_cps: number | null
  daily_spend_cap_minor: number | null
  max_call_duration_seconds: number | null
  max_destination_rate_minor: number | null
  revision: number
  created_at: Instant
  updated_at: Instant
}

export interface SubtrunkTable {
  id: string
  project_id: string
  trunk_id: string
  name: string
  status: 'enabled' | 'disabled' | 'releasing' | 'released'
  concurrency: number | null
  cps: number | null
  daily_spend_cap_minor: number | null
  velocity_cap_minor: number | null
  max_call_duration_seconds: number | null
  max_destination_rate_minor: number | null
  revision: number
  created_at: Instant
  updated_at: Instant
}

/**
 * A contiguous range of the project's numbers. Both ends are E.164 with plus and of the same length, so that text
 * order is number order.
 */
export interface NumberBlockTable {
  id: string
  project_id: string
  start: string
  end: string
  size: number
  created_at: Instant
}

export interface DelegationTable {
  id: string
  block_id: string
  subtrunk_id: string
  start: string
  end: string
  size: number
  status: 'pending' | 'applying' | 'applied' | 'failed' | 'detaching'
  assigned_at: Instant
  assigned_by: string
  /** The configuration revision that puts its last change in force. */
  revision: Generated<number>
}

/** Ceilings that the operator sets on a whole project; a project without a row has none. */
export interface ProjectCeilingTable {
  project_id: string
  concurrency: number | null
  cps: number | null
  daily_spend_cap_minor: number | null
  velocity_cap_minor: number | null
  max_call_duration_seconds: number | null
  max_destination_rate_minor: number | null
  revision: number
  updated_at: Instant
}

/** Number settings of a trunk. Defaults apply to a trunk without a row. */
export interface TrunkSettingTable {
  trunk_id: string
  /** ISO code of the country whose national number formats are accepted. */
  country: string
  /** Number to present when the peer presents none that it may; with plus. */
  default_caller: string | null
}

/** An emergency or short code and its route. */
export interface ShortCodeTable {
  id: string
  /** Null: for every project. */
  project_id: string | null
  code: string
  /** With the plus. */
  sends_to: string
}

export interface ContainmentTable {
  id: string
  project_id: string
  /** Null: on every service of the project. */
  trunk_id: string | null
  /** Digits after the plus. */
  prefix: string
  case_ref: string
  reason_category: 'spend_velocity' | 'destination_risk' | 'account_compromise'
  reason_detail: string
  rejection_count: number
  source_alert_id: string | null
  starts_at: Instant
  expires_at: Instant
  released_at: Instant | null
  released_by: string | null
  notified_at: Instant | null
  notified_event: string | null
}

export interface ContainmentReleaseRequestTable {
  id: string
  containment_id: string
  state: 'pending' | 'approved' | 'rejected'
  note: string
  requested_at: Instant
  requested_by: string
  decision_at: Instant | null
  decision_by: string | null
  decision_reason: string | null
}
