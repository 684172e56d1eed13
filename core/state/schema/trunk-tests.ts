import type { Generated } from 'kysely'
import type { Flag, Instant } from './configuration.ts'

export type TrunkTestKind = 'config_validation' | 'rtp_reachability' | 'test_call'

/** One test run of a trunk or of a carrier, carried out by a signaling node. */
export interface TrunkTestRunTable {
  id: string
  /** The trunk's project; `installation` for a carrier. */
  project_id: string
  subject_type: Generated<'trunk' | 'carrier'>
  subject_id: string
  requested_kind: TrunkTestKind
  /** The subject's revision when the test was requested. */
  requested_revision: number
  destination: string | null
  result: 'running' | 'passed' | 'failed'
  finding: string | null
  call_sid: string | null
  call_summary: string | null
  /** The subject's revision in force during the test; null before it. */
  configuration_revision: number | null
  run_by: string
  scheduled: Flag
  /** Node that claimed the run; null until one does. */
  node_id: string | null
  started_at: Instant
  finished_at: Instant | null
}

export interface TrunkTestCheckTable {
  id: string
  run_id: string
  /** Increases with every change of any check of the run. */
  sequence: number
  state: 'waiting' | 'passed' | 'failed' | 'skipped'
  summary: string | null
  target_ref: string | null
  node_id: string | null
  duration_ms: number | null
  occurred_at: Instant | null
}
