import type { Generated } from 'kysely'
import type { Instant, Json } from './configuration.ts'

/** What a node knows of a target by its keep-alives. */
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

/** A contact of a digest user, while it lasts. */
export interface RegistrationTable {
  credential_id: string
  contact: string
  trunk_id: string
  /** Where the REGISTER came from. */
  source_address: string
  source_port: number
  transport: string
  user_agent: string | null
  registered_at: Instant
  expires_at: Instant
}
