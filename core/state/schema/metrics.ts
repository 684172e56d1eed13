import type { Figures } from '../../domain/metrics/figures.ts'

/** Sums over the calls of a trunk that ended in a step of time; test calls are left out. */
export interface TrunkStepTable extends Figures {
  trunk_id: string
  /** Length of the step: a minute or an hour, in milliseconds. */
  step_ms: number
  /** Milliseconds since the epoch. */
  begin_ms: number
}

/** Why calls of a trunk that ended in a step of time were not answered. */
export interface TrunkStepFailureTable {
  trunk_id: string
  step_ms: number
  begin_ms: number
  platform_reason: string
  /** 0 when there was none: a column of a key cannot be null. */
  sip_code: number
  calls: number
}
