import type { Generated } from 'kysely'
import type { Flag, Instant, Json } from './configuration.ts'

/** A node's knowledge of a target, learnt from keep-alives. */
export interface TargetEvidenceTable {
  target_id: string
  node_id: string
  state: 'unknown' | 'healthy' | 'degraded'
  misses: number
  /** Of the last OPTIONS; 408 and 503 may be the SIP server's own word for silence and unreachable. */
  last_code: number | null
  /** From which it answered last. */
  address: string | null
  checked_at: Instant
}

/** Media quality of one leg, each 10 s and at its end. */
export interface MediaQualityTable {
  id: Generated<number>
  call_sid: string
  leg_id: string
  at: Instant
  /** LegStats of the media protocol. */
  stats: Json
}

/** A contact of a digest user or of a browser client, while it lasts. */
export interface RegistrationTable {
  /** Of a client: `client:<project id>:<name>`. */
  credential_id: string
  contact: string
  /** Empty for a client. */
  trunk_id: string
  /** The source address of the REGISTER. */
  source_address: string
  source_port: number
  transport: string
  user_agent: string | null
  registered_at: Instant
  expires_at: Instant
}

/** A dialog on a SIP server that keeps its dialogs when their node is gone. */
export interface SipDialogTable {
  /** `host:port` of its control link. */
  server: string
  dialog_id: string
  node_id: string
  began_at: Instant
}

/** How we register with a carrier. */
export interface CarrierRegistrationTable {
  carrier_id: string
  /** `sip:host[:port]`: where the REGISTER goes, and the domain of the address that is registered. */
  registrar: string
  transport: 'udp' | 'tcp' | 'tls'
  username: string
  password_sealed: string
  /** User part of our contact: the carrier may call us by it. */
  contact_user: string
  expires_seconds: number
  enabled: Flag
  /** How the registrar proves by TLS that it is itself; by chain and name unless somebody said otherwise. */
  tls_verification: Generated<'required' | 'pinned' | 'off'>
  /** SHA-256 of the pinned certificate: 64 hexadecimal digits in lower case. */
  tls_fingerprint: Generated<string | null>
}

/** How the registration with a carrier stands; written by the node that keeps it. */
export interface CarrierRegistrationStateTable {
  carrier_id: string
  node_id: string
  state: 'registering' | 'registered' | 'failed' | 'unregistered'
  /** Of the registrar's last answer; null when there was none. */
  last_code: number | null
  detail: string | null
  registered_at: Instant | null
  expires_at: Instant | null
  next_try_at: Instant | null
  /** In a row. */
  failures: number
  changed_at: Instant
}
