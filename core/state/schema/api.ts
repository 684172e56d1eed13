import type { Generated } from 'kysely'
import type { Instant, Json } from './configuration.ts'

/** A month that is over, as it was told to the one who pays; never changed afterwards. */
export interface BillingDocumentTable {
  project_id: string
  /** `YYYY-MM` of the organization's time zone. */
  period: string
  issued_at: Instant
  /** The whole statement (core/domain/billing/statement.ts). */
  body: Json
}

export interface NumberOrderTable {
  position: Generated<number>
  id: string
  project_id: string
  /** JSON list of the numbers ordered, with the plus. */
  numbers: Json
  created_at: Instant
}

/** Gives the recordings of a project that exist already another time to be kept, a batch at a time. */
export interface RetentionJobTable {
  position: Generated<number>
  id: string
  project_id: string
  state: 'running' | 'completed'
  retention_days: number
  total: number
  done: number
  begun_by: string
  /** The last recording that was looked at; empty at first. */
  after_created_at: string
  after_sid: string
  created_at: Instant
  updated_at: Instant
  finished_at: Instant | null
}

/** How far a teller of events has read what it tells from. */
export interface ToldEventTable {
  name: string
  position: number
}
