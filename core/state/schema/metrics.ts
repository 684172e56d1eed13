import type { CarrierMedia } from '../../domain/metrics/carrier-media.ts'
import type { Figures } from '../../domain/metrics/figures.ts'

/** Sums over a subject's calls that ended within a time step, without test calls. */
export interface CallStepTable extends Figures {
  /** A trunk or an application; the project of calls without a trunk. */
  subject_id: string
  /** Length of the step: a minute or an hour, in milliseconds. */
  step_ms: number
  /** Milliseconds since the epoch. */
  begin_ms: number
}

/** Sums over a carrier's legs that ended within a time step. */
export interface CarrierMediaStepTable extends CarrierMedia {
  carrier_id: string
  step_ms: number
  begin_ms: number
}

/** How many calls a subject had at once within a time step, by samples of its live calls. */
export interface LoadStepTable {
  /** A project, trunk, application or subaccount. */
  subject_id: string
  step_ms: number
  begin_ms: number
  most_calls: number
  /** Calls times milliseconds. */
  call_ms: number
}

/** Failure reasons of a subject's unanswered calls that ended within a time step. */
export interface CallStepFailureTable {
  subject_id: string
  step_ms: number
  begin_ms: number
  platform_reason: string
  /** 0 when there was none, because a key column cannot be null. */
  sip_code: number
  calls: number
}
