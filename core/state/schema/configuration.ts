import type { Generated } from 'kysely'
import type { ClaimStanding } from '../../domain/identity/claims.ts'
import type { Audience } from '../../domain/numbers/import.ts'

/** Column types that every SQL dialect stores alike: booleans as 0 or 1, objects as JSON, times as ISO 8601 in UTC. */
export type Flag = 0 | 1
export type JsonText = string
export type Instant = string

export interface OrganizationTable {
  id: string
  name: string
  time_zone: string
  /** Where the operator writes to the customer; null for one that `bootstrap` made. */
  contact_email: string | null
  status: Generated<'active' | 'suspended'>
  revision: Generated<number>
  /** What the parties of a call hear while a member listens to it. */
  listening_notice: Generated<'tone' | 'spoken'>
  created_at: Instant
}

export interface ProjectTable {
  id: string
  organization_id: string
  name: string
  status: 'active' | 'disabled'
  currency: string
  /** 1: the sandbox carrier plays the network and nothing is billed. */
  sandbox: Flag
  billing_account_id: string
  billing_assignment_revision: number
  billing_effective_from: Instant
  /** 1: disabled because its organization is suspended, and enabled again with it. */
  suspended: Generated<Flag>
  /** JSON list of the names of high-risk destinations that an operator has opened (core/domain/fraud/high-risk.ts). */
  open_risks: Generated<JsonText>
  revision: Generated<number>
  created_at: Instant
}

export type Role = 'org:admin' | 'org:engineer' | 'org:billing' | 'org:viewer'

export interface MemberTable {
  id: string
  organization_id: string
  email: string
  password_hash: string
  role: Role
  operator: Flag
  /** Since when an operator has locked the member out; null for never. */
  locked_at: Generated<Instant | null>
  created_at: Instant
}

/** A link by which a member sets a new password. Only the token's hash is kept. */
export interface PasswordResetTable {
  member_id: string
  token_hash: string
  created_at: Instant
  expires_at: Instant
}

/** A link by which a person becomes a member. Only the token's hash is kept. */
export interface MemberInvitationTable {
  id: string
  token_hash: string
  organization_id: string
  email: string
  role: Role
  created_at: Instant
  expires_at: Instant
}

export interface ApiKeyTable {
  id: string
  project_id: string
  public_id: string
  secret_hash: string
  name: string
  role: Role
  /** JSON list of scopes. */
  scopes: JsonText
  subaccount_id: string | null
  expires_at: Instant | null
  retires_at: Instant | null
  rotated_from_id: string | null
  revoked_at: Instant | null
  last_used_at: Instant | null
  created_at: Instant
}

/** A key for /operator/v1. It belongs to the installation, not to an organization. */
export interface OperatorKeyTable {
  id: string
  public_id: string
  secret_hash: string
  name: string
  /** JSON list of operator scopes. */
  scopes: JsonText
  expires_at: Instant | null
  revoked_at: Instant | null
  last_used_at: Instant | null
  created_at: Instant
}

export interface VoiceAccountTable {
  project_id: string
  account_sid: string
  /** Sealed with the master key, not hashed: the owner can read the token, and it signs webhooks. */
  auth_token_sealed: string
  key_id: string
  status: 'pending' | 'active' | 'revoked'
  call_event_history: 'enabled' | 'disabled'
  /** Which paths of the voice-calls API the account is served: those of the specification, or all of the registry. */
  voice_api: Generated<'spec' | 'extended'>
  revision: number
  created_at: Instant
}

/** `consume`: we carry a transfer out. `refuse`: we answer 603. */
export type Transfers = 'consume' | 'pass' | 'refuse'

export interface TrunkTable {
  id: string
  project_id: string
  subaccount_id: string | null
  name: string
  status: 'draft' | 'enabled' | 'disabled' | 'releasing' | 'released'
  direction: 'inbound' | 'outbound' | 'both'
  auth_mode: 'ip_allow_list' | 'digest'
  require_tls: Flag
  source_validation: 'relaxed' | 'strict'
  media_security: 'rtp' | 'sdes_srtp_required'
  /** What a REFER of the peer does. */
  transfers: Transfers
  /** JSON list of codec names in order of preference. */
  codecs: JsonText
  concurrency: number
  cps: number
  max_call_duration_seconds: number
  signaling_fqdn: string
  revision: number
  created_at: Instant
  updated_at: Instant
}

export interface TrunkSourceTable {
  id: string
  trunk_id: string
  cidr: string
  /** Sorts in address order, and is independent of how the range was written (`rangeKey`). */
  range_key: string
  enabled: Flag
  selector_precedence: number
  /** Standing of the source among other tenants' claims (core/domain/identity/claims.ts). */
  standing: Generated<ClaimStanding>
  created_at: Instant
}

/** An address from which a trunk has authenticated by digest. */
export interface DigestProofTable {
  trunk_id: string
  address: string
  /** Sorts in address order. */
  address_key: string
  /** Day of the last proof, YYYY-MM-DD in UTC. */
  day: string
}

export interface DigestCredentialTable {
  id: string
  trunk_id: string
  realm: string
  username: string
  ha1_md5: string
  ha1_sha256: string
  enabled: Flag
  new_applied_at: Instant | null
  previous_retires_at: Instant | null
  revoked_at: Instant | null
  rotated_from_id: string | null
  valid_until: Instant | null
  created_at: Instant
}

/** Which hosts a 3xx may send a call to: none, the one that was called, or any target of the same trunk or carrier. */
export type Redirects = 'off' | 'same_host' | 'listed'

export interface TerminationTargetTable {
  id: string
  trunk_id: string
  sip_uri: string
  transport: 'udp' | 'tcp' | 'tls'
  priority: number
  weight: number
  tls_verification: Generated<'required' | 'pinned' | 'off'>
  /** SHA-256 of the certificate, for `pinned`. */
  tls_fingerprint: Generated<string | null>
  redirects: Generated<Redirects>
  /** Answers the target's challenges, with the password; null when it does not challenge us. */
  digest_username: Generated<string | null>
  digest_password_sealed: Generated<string | null>
  enabled: Flag
  created_at: Instant
  updated_at: Instant
}

export interface CarrierTable {
  id: string
  name: string
  codecs: JsonText
  enabled: Flag
  /** 1: the sandbox carrier. Only projects in sandbox mode use it. It is never billed. */
  sandbox: Flag
  revision: number
  redirects: Generated<Redirects>
  created_at: Instant
}

/** What answers a carrier's challenges. */
export interface CarrierCredentialTable {
  carrier_id: string
  username: string
  password_sealed: string
}

export interface CarrierSourceTable {
  id: string
  carrier_id: string
  cidr: string
}

export interface CarrierTargetTable {
  id: string
  carrier_id: string
  sip_uri: string
  transport: 'udp' | 'tcp' | 'tls'
  priority: number
  weight: number
  tls_verification: Generated<'required' | 'pinned' | 'off'>
  /** SHA-256 of the certificate, for `pinned`. */
  tls_fingerprint: Generated<string | null>
  enabled: Flag
}

export interface CarrierRouteTable {
  id: string
  carrier_id: string
  /** Digits after the plus. The empty prefix matches every number. */
  prefix: string
  priority: number
  cost_minor: number
}

export interface VoiceApplicationTable {
  id: string
  project_id: string
  name: string
  voice_url: string
  voice_method: 'GET' | 'POST'
  fallback_url: string | null
  fallback_method: 'GET' | 'POST'
  status_callback_url: string | null
  status_callback_method: 'GET' | 'POST'
  /** The engines that hear and speak in its calls; null: the operator's. */
  stt: string | null
  tts: string | null
  revision: number
  created_at: Instant
  updated_at: Instant
  deleted_at: Instant | null
}

export interface NumberTable {
  id: string
  /** With the plus. */
  e164: string
  /** Null while the number is in the operator's inventory. */
  project_id: string | null
  status: 'available' | 'held' | 'quarantined'
  route_kind: 'voice_application' | 'trunk' | 'subtrunk' | null
  route_id: string | null
  /** The second route: for calls that no target of the first, a trunk or subtrunk, can take. */
  fallback_kind: Generated<'voice_application' | 'trunk' | 'subtrunk' | null>
  fallback_id: Generated<string | null>
  quarantined_until: Instant | null
  /** While quarantined: the trunk whose calls it was for, directly or through a subtrunk; null for none. */
  last_trunk_id: Generated<string | null>
  /** What a project pays for a month; 0: nothing. */
  monthly_minor: Generated<number>
  /** Who may order it while it is in the inventory. */
  offered_to: Generated<Audience>
  /** The project of an offer to one. */
  offered_project_id: Generated<string | null>
  revision: number
  created_at: Instant
  updated_at: Instant
}

/**
 * One row whose revision increases with every change that a signaling node must apply. Nodes poll only this row.
 */
export interface ConfigurationTable {
  id: Generated<number>
  revision: number
}

/** One row: the proof that an installation has the master key of this database. */
export interface KeyProofTable {
  id: 1
  proof: string
  created_at: Instant
}

export interface NodeTable {
  id: string
  kind: 'signaling' | 'media' | 'edge' | 'control'
  machine_id: Generated<string>
  boot_id: Generated<string>
  pid: number
  started_at: Instant
  heartbeat_at: Instant
  /** Since when a signaling node takes no new calls; null while it takes them. */
  draining_at: Instant | null
  /** When others declared a signaling node lost, because of its silence. They end its calls and delete the row. */
  lost_at: Generated<Instant | null>
  /** When another machine last heard a signaling node that does not reach the database. */
  attested_at: Generated<Instant | null>
}

/** A machine: what its platform was started with. */
export interface MachineTable {
  id: string
  /** Its address for peers. */
  host: string
  base_url: string
  sip_port: number
  /** 0: it serves the APIs alone. Versions without `roles` read it. */
  takes_calls: Flag
  /** What it does: names of roles, separated by spaces; '': a version without roles wrote the row. */
  roles: Generated<string>
  /** All its addresses for peers, separated by spaces; '' is `host` alone. */
  hosts: Generated<string>
  /** Certificates (PEM) that its peers must trust, without keys. */
  certificate: Generated<string>
  version: string
  /**
   * Its version, and the contracts (`migrations/index.ts`) that the version can live with. An older version writes
   * `version` alone, so that the two differ then.
   */
  contracts: string
  /** JSON: hashes of the settings that all machines must have in common, by name. */
  settings: string
  started_at: Instant
  /** A machine that was not seen for days is forgotten. */
  seen_at: Instant
}

/** Where the edge of a machine hears those of other machines. */
export interface EdgeLinkTable {
  machine_id: string
  host: string
  port: number
}

/** The store's clock for one boot of the machine (core/state/sqlite/store-clock.ts). */
export interface StoreClockTable {
  boot_id: string
  /** Offset to add to the machine's monotonic clock. */
  ahead_ms: number
}

/** The process that holds a task which one process does for all. */
export interface TaskLeaseTable {
  name: string
  /** Name of the process (core/runtime/machine.ts). */
  holder: string
  until: Instant
  /** Rises with each holder. What a holder writes counts while this is its term. */
  term: Generated<number>
}

/** A digest nonce that one machine counts, and that no other accepts. */
export interface NonceClaimTable {
  /** The HMAC in the nonce. */
  mac: string
  expires_at: Instant
}

/** What is left of a limit that machines share. */
export interface RateBucketTable {
  name: string
  /** Requests left at `at_ms`. */
  millionths: number
  /** When it was counted; of a window, when that began. Milliseconds of the server's clock. */
  at_ms: number
  /** From then on, no row says the same. */
  full_at_ms: number
}

/** The certificate of a set of names by one authority, which machines with these names share. */
export interface AcmeCertificateTable {
  directory: string
  /** Sorted, separated by spaces. */
  names: string
  /** Its key and chain, sealed; '' when none was issued yet. */
  pem: Generated<string>
  /** The machine that ordered last; its order is over when `ordered_until` is. */
  ordered_by: Generated<string>
  ordered_until: Generated<string>
  /** When the last order failed; '' after one that did not. */
  failed_at: Generated<string>
}

/** A proof for an authority that the machines with these names show. */
export interface AcmeProofTable {
  token: string
  directory: string
  names: string
  type: 'http-01' | 'tls-alpn-01'
  name: string
  key_authorization: string
  /** The machine that orders. */
  machine_id: string
  until: string
}

/** A machine that has these names, and the tokens of the proofs that it shows for others. */
export interface AcmeMachineTable {
  machine_id: string
  directory: string
  names: string
  type: 'http-01' | 'tls-alpn-01'
  shown: string
  seen_at: string
}

/** A node's applied revision of a resource. The lowest of all live nodes is effective (design section 8). */
export interface ApplyReportTable {
  node_id: string
  resource_id: string
  revision: number
  state: 'applied' | 'failed'
  error: string | null
  applied_at: Instant
}

export interface IdempotencyTable {
  /** SHA-256 of project, subaccount of a restricted key, method, path and key. */
  scope_hash: string
  request_hash: string
  state: 'running' | 'done'
  status: number | null
  body: JsonText | null
  headers: JsonText | null
  created_at: Instant
  expires_at: Instant
}
