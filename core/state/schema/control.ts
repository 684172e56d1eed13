import type { Generated } from 'kysely'
import type { Flag, Instant, JsonText } from './configuration.ts'

export type AuditActorType = 'user' | 'api_key' | 'operator' | 'system'
export type AuditKind = 'trunks' | 'numbers' | 'credentials' | 'seats' | 'alerts'

/** One recorded change. Rows are only inserted. `hash` chains each to its predecessor in the organization. */
/** The last entry of an organization's audit chain. */
export interface AuditHeadTable {
  organization_id: string
  hash: string
  events: number
}

export interface AuditEventTable {
  position: Generated<number>
  id: string
  organization_id: string
  project_id: string | null
  at: Instant
  actor_type: AuditActorType
  actor_id: string | null
  actor_name: string
  actor_detail: string | null
  category: 'configuration' | 'security' | 'operator'
  kind: AuditKind
  action: string
  summary: string
  detail: string | null
  resource_type: string
  resource_id: string
  resource_name: string
  resource_href: string | null
  trunk_id: string | null
  from_revision: number | null
  to_revision: number | null
  request_id: string | null
  /** JSON list of {label, before, after, redacted, unchanged}. */
  changes: JsonText
  previous_hash: string
  /** SHA-256 over `previous_hash` and every other column. */
  hash: string
}

/** A URL that receives events of a project. Secrets are sealed with the master key. */
export interface WebhookEndpointTable {
  id: string
  project_id: string
  url: string
  description: string | null
  /** JSON list of event kinds. */
  event_kinds: JsonText
  enabled: Flag
  secret_sealed: string
  previous_secret_sealed: string | null
  previous_secret_retires_at: Instant | null
  revision: number
  created_at: Instant
  updated_at: Instant
  deleted_at: Instant | null
}

/** One event for one endpoint, delivered in order of position, at least once, for up to 24 hours. */
export interface WebhookDeliveryTable {
  position: Generated<number>
  id: string
  endpoint_id: string
  project_id: string
  /** Identical for all attempts and redeliveries. */
  event_id: string
  event_kind: string
  payload: JsonText
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  next_attempt_at: Instant
  lease_until: Instant | null
  last_status: number | null
  last_error: string | null
  last_attempt_at: Instant | null
  delivered_at: Instant | null
  expires_at: Instant
  created_at: Instant
}

/** A member signed in to the console. `id_hash` is the SHA-256 of the cookie. */
export interface ConsoleSessionTable {
  id_hash: string
  member_id: string
  csrf_hash: string
  created_at: Instant
  last_seen_at: Instant
  expires_at: Instant
  address: string
}

/**
 * A member's second factor for signing in. A member without a row has none.
 */
export interface MemberSecurityTable {
  member_id: string
  totp_sealed: string | null
  totp_enabled: Flag
  /** Time step of the last accepted code, so that no code is accepted twice (RFC 6238 §5.2). */
  totp_last_step: number
}

/** An unused recovery code of a member, as its SHA-256. The use of a code deletes its row. */
export interface MemberRecoveryCodeTable {
  member_id: string
  code_hash: string
  created_at: Instant
}

/** A member's consent to recording the project's calls, under the named terms. */
export interface RecordingConsentTable {
  project_id: string
  accepted_at: Instant
  accepted_by: string
  terms_version: string
}
