/** Alerts (spec, "Alerts"): their subjects, and when they fire and end. Times are ISO 8601 in UTC. */

export const ALERT_KINDS = [
  'balance_low',
  'spend_daily',
  'spend_monthly',
  'spend_velocity',
  'first_seen_high_cost_destination',
  'new_source_ip',
  'endpoint_health',
  'trunk_apply_failed',
] as const
export type AlertKind = (typeof ALERT_KINDS)[number]

export const ALERT_CHANNELS = ['email', 'webhook', 'in_app', 'sms'] as const
type AlertChannel = (typeof ALERT_CHANNELS)[number]

export type AlertSeverity = 'critical' | 'warning' | 'info'
export type AlertState = 'firing' | 'acknowledged' | 'resolved'
export type AlertSourceState = 'measured' | 'data_unavailable'

export const SUBJECT_TYPES = ['account', 'organization', 'trunk', 'subaccount', 'webhook_endpoint'] as const
export type SubjectType = (typeof SUBJECT_TYPES)[number]

export const RESOLUTION_RULES = [
  'below_threshold',
  'day_rollover',
  'month_rollover',
  'acknowledged_or_24h',
  'consecutive_successes',
  'later_revision',
] as const
type ResolutionRule = (typeof RESOLUTION_RULES)[number]

export interface Threshold {
  readonly amount_minor: number | null
  readonly currency: string | null
  readonly min_events: number | null
  /** Percentage of the ceiling that the amount is compared with, as text: `80` or `12.5`. */
  readonly percent: string | null
  readonly window_seconds: number | null
}

export interface Resolution {
  readonly rule: ResolutionRule
  readonly amount_minor: number | null
  readonly count: number | null
  readonly currency: string | null
  readonly for_seconds: number | null
  readonly percent: string | null
}

export interface AlertScope {
  readonly id: string | null
  readonly label: string
  readonly type: SubjectType
}

/** One immutable revision of a policy. */
export interface AlertPolicy {
  readonly id: string
  readonly revision: number
  readonly kind: AlertKind
  readonly enabled: boolean
  readonly channels: readonly AlertChannel[]
  readonly scope: AlertScope
  readonly threshold: Threshold
  readonly resolution: Resolution
  /** Spend within `platform_ceiling_window_seconds` at which the platform acts whatever the policy says. */
  readonly platform_ceiling_minor: number | null
  readonly platform_ceiling_window_seconds: number | null
}

export interface AlertEvidence {
  readonly amount_minor: number | null
  readonly currency: string | null
  /** Whether the amount includes the reservations of running calls. */
  readonly held: boolean
  readonly label: string
  readonly note: string | null
  readonly text: string | null
}

interface SuggestedAction {
  readonly href: string
  readonly label: string
}

export interface AlertSubject {
  readonly id: string
  readonly name: string
  readonly type: SubjectType
}

/** A condition that one look at the facts found to hold. */
export interface AlertFinding {
  readonly kind: AlertKind
  readonly dedupe_key: string
  readonly severity: AlertSeverity
  readonly subject: AlertSubject
  readonly trunk_id: string | null
  readonly reason: string
  readonly remediation: string
  readonly evidence: readonly AlertEvidence[]
  readonly suggested_actions: readonly SuggestedAction[]
  /** The subject's revision that the condition concerns; null without one. */
  readonly version: number | null
}

/** The result of one look at the facts of one kind, for one project. */
export interface Look {
  readonly kind: AlertKind
  /** False while the source of these facts is unavailable. */
  readonly available: boolean
  readonly findings: readonly AlertFinding[]
  /**
   * Keys of subjects found healthy, with a number that identifies the evidence (its time, or a revision).
   * `consecutive_successes` and `later_revision` count these.
   */
  readonly well: ReadonlyMap<string, number>
  /** Keys of open alerts whose subject was released, removed or disabled. */
  readonly gone: ReadonlySet<string>
}

/** The state of an alert that is not resolved. */
export interface OpenAlert {
  readonly id: string
  readonly dedupe_key: string
  readonly kind: AlertKind
  readonly state: 'firing' | 'acknowledged'
  readonly source_state: AlertSourceState
  readonly fired_at: string
  readonly below_since: string | null
  readonly successes: number
  readonly version: number | null
  readonly resolution: Resolution
}

export type Transition =
  | { readonly do: 'fire'; readonly finding: AlertFinding }
  /** The condition still holds: updates the alert. */
  | { readonly do: 'keep'; readonly alert: OpenAlert; readonly finding: AlertFinding }
  | {
      readonly do: 'count'
      readonly alert: OpenAlert
      readonly below_since: string | null
      readonly successes: number
      readonly version: number | null
    }
  | { readonly do: 'source'; readonly alert: OpenAlert; readonly source_state: AlertSourceState }
  | { readonly do: 'resolve'; readonly alert: OpenAlert; readonly why: string }
