import type { Generated } from 'kysely'
import type { Flag, Instant, JsonText } from './configuration.ts'

/** A node's evidence of a target's health, from keep-alives. */
export interface TargetEvidenceTable {
  target_id: string
  node_id: string
  state: 'unknown' | 'healthy' | 'degraded'
  misses: number
  /** Status of the last OPTIONS. The local SIP server may generate 408 (no response) and 503 (unreachable). */
  last_code: number | null
  /** Source address of its last response. */
  address: string | null
  checked_at: Instant
}

/** The final media figures of one leg, written once when it ends. */
export interface LegFiguresTable {
  call_sid: string
  leg_id: string
  ended_at: Instant
  /** LegFigures of core/domain/calls/leg-figures.ts. */
  figures: JsonText
}

/** Media quality of one leg, sampled every 10 s. */
export interface MediaQualityTable {
  id: Generated<number>
  call_sid: string
  leg_id: string
  at: Instant
  /** LegStats of the media protocol. */
  stats: JsonText
}

/** A registered contact of a digest user or a browser client, until it expires. */
export interface RegistrationTable {
  /** For a browser client: `client:<project id>:<name>`. */
  credential_id: string
  contact: string
  /** Empty for a browser client. */
  trunk_id: string
  /** The source address of the REGISTER. */
  source_address: string
  source_port: number
  transport: string
  /** The machine whose edge received the REGISTER; empty in rows of before there were several. */
  machine_id: Generated<string>
  /** The key of the voice account that made a client's token; empty for a digest user, and in rows of before. */
  key_id: Generated<string>
  user_agent: string | null
  /** When the row last changed. A removed contact expired then. */
  registered_at: Instant
  expires_at: Instant
}

/** A dialog on a SIP server that keeps its dialogs when their node is lost. */
export interface SipDialogTable {
  /** `host:port` of the server's control link. */
  server: string
  dialog_id: string
  node_id: string
  began_at: Instant
}

/** Settings of our registration with a carrier. */
export interface CarrierRegistrationTable {
  carrier_id: string
  /** `sip:host[:port]`: the target of the REGISTER and the domain of the address of record. */
  registrar: string
  transport: 'udp' | 'tcp' | 'tls'
  username: string
  password_sealed: string
  /** User part of our Contact, by which the carrier may call us. */
  contact_user: string
  expires_seconds: number
  enabled: Flag
  /** How TLS authenticates the registrar. Default: by certificate chain and name. */
  tls_verification: Generated<'required' | 'pinned' | 'off'>
  /** SHA-256 of the pinned certificate: 64 hexadecimal digits in lower case. */
  tls_fingerprint: Generated<string | null>
}

/** State of a registration with a carrier, written by the node that maintains it. */
export interface CarrierRegistrationStateTable {
  carrier_id: string
  node_id: string
  state: 'registering' | 'registered' | 'failed' | 'unregistered'
  /** Status of the registrar's last response; null when there was none. */
  last_code: number | null
  detail: string | null
  registered_at: Instant | null
  expires_at: Instant | null
  next_try_at: Instant | null
  /** Consecutive failures. */
  failures: number
  changed_at: Instant
}
