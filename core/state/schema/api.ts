import type { Generated } from 'kysely'
import type { Instant, Json } from './configuration.ts'

/** The issued statement of a past month. It never changes. */
export interface BillingDocumentTable {
  project_id: string
  /** `YYYY-MM` in the organization's time zone. */
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

/** Changes the retention of a project's existing recordings, a batch at a time. */
export interface RetentionJobTable {
  position: Generated<number>
  id: string
  project_id: string
  state: 'running' | 'completed'
  retention_days: number
  total: number
  done: number
  begun_by: string
  /** The last recording processed; empty at first. */
  after_created_at: string
  after_sid: string
  created_at: Instant
  updated_at: Instant
  finished_at: Instant | null
}

/** The position up to which an event source has been reported. */
export interface ToldEventTable {
  name: string
  position: number
}
