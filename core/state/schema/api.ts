import type { Generated } from 'kysely'
import type { Audience } from '../../domain/numbers/import.ts'
import type { Instant, JsonText } from './configuration.ts'

/** The issued statement of a past month. It never changes. */
export interface BillingDocumentTable {
  project_id: string
  /** `YYYY-MM` in the organization's time zone. */
  period: string
  issued_at: Instant
  /** The whole statement (core/domain/billing/statement.ts). */
  body: JsonText
}

export interface NumberOrderTable {
  position: Generated<number>
  id: string
  project_id: string
  /** JSON list of the numbers ordered, with the plus. */
  numbers: JsonText
  created_at: Instant
}

/** Adds a list of numbers to the inventory, a slice at a time, once an operator has confirmed its preview. */
export interface NumberImportTable {
  position: Generated<number>
  id: string
  name: string
  /** `reading`: its lines are being written, or their writer is gone. */
  state: 'reading' | 'preview' | 'running' | 'completed'
  total: number
  /** Numbers of the list that the platform had already when it was read. They stay as they are. */
  known: number
  /** Lines that the job has taken, and those of them that were new. */
  done: number
  added: number
  /** Lines with a price. */
  priced: number
  begun_by: string
  created_at: Instant
  updated_at: Instant
  finished_at: Instant | null
}

/** A line of an import that has not been taken yet. */
export interface NumberImportLineTable {
  import_id: string
  e164: string
  monthly_minor: number
  offered_to: Audience
  offered_project_id: string | null
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

/** Writes the calls of a project, or of the installation, into a file of the data folder, a slice at a time. */
export interface CallExportTable {
  position: Generated<number>
  id: string
  /** Null: an operator's, of all projects. */
  project_id: string | null
  /** The subaccount of the restricted key that began it; only such keys and unrestricted ones see it. */
  subaccount_id: string | null
  /** `deleted`: its file is to be removed, and then this row. */
  state: 'queued' | 'running' | 'completed' | 'failed' | 'deleted'
  format: 'csv' | 'jsonl'
  /** JSON of a HistoryFilter. */
  filter: JsonText
  begun_by: string
  created_at: Instant
  finished_at: Instant | null
  /** When the file is deleted; null while the job is open. */
  expires_at: Instant | null
  /** Why it failed, as a sentence. */
  error: string | null
  /** Calls after `first_position`, up to `last_position`; those up to `after_position` are in the file. */
  first_position: number
  after_position: number
  last_position: number
  rows: number
  /** The part of the file that counts: what a killed process wrote beyond it is cut off. */
  bytes: number
  /** Slices that failed since the last one that succeeded. */
  failures: number
  /** The machine that writes, serves and deletes the file; empty: of a release before machines were told apart. */
  machine_id: Generated<string>
}

/** The position up to which an event source has been reported. */
export interface ReportedEventTable {
  name: string
  position: number
}
