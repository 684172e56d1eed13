import {
  beginOf,
  type EndedCall,
  FIGURE_NAMES,
  failureOfCall,
  figuresOfCall,
  STEPS_MS,
} from '../../../domain/metrics/index.ts'
import type { CdrTable } from '../../db.ts'

/** Statements that add an ended call to the sums of its trunk and its application, by minute and by hour. */

interface EndedRecord extends EndedCall, Pick<CdrTable, 'project_id' | 'trunk_id' | 'origin' | 'ended_at'> {
  readonly application_id: string | null
}

export const KEY = ['subject_id', 'step_ms', 'begin_ms'] as const
const rowsOf = (columns: number): string =>
  STEPS_MS.map(() => `(${Array.from({ length: columns }, () => '?').join(', ')})`).join(', ')

// Raw SQL, because every ended call runs both statements. They add all figures, zero or not.
const ADD_FIGURES = `insert into call_step (${[...KEY, ...FIGURE_NAMES].join(', ')})
  values ${rowsOf(KEY.length + FIGURE_NAMES.length)} on conflict (${KEY.join(', ')}) do update
  set ${FIGURE_NAMES.map(name => `${name} = call_step.${name} + excluded.${name}`).join(', ')}`
export const FAILURE_KEY = [...KEY, 'platform_reason', 'sip_code']
const ADD_FAILURE = `insert into call_step_failure (${[...FAILURE_KEY, 'calls'].join(', ')})
  values ${rowsOf(FAILURE_KEY.length + 1)} on conflict (${FAILURE_KEY.join(', ')}) do update
  set calls = call_step_failure.calls + 1`

interface CountingStep {
  readonly sql: string
  readonly parameters: readonly (string | number | null)[]
}

/** Returns the statements that count an ended call; none for a test call. */
export function countsOfEndedCall(call: EndedRecord): CountingStep[] {
  if (call.origin === 'test') return []
  // Calls without a trunk (of the API, of browsers) are summed under their project's id.
  const subjects = [call.trunk_id ?? call.project_id, ...(call.application_id === null ? [] : [call.application_id])]
  const ended_ms = Date.parse(call.ended_at)
  const figures = figuresOfCall(call)
  const values = FIGURE_NAMES.map(name => figures[name])
  const failure = failureOfCall(call)
  return subjects.flatMap(subject_id => {
    const steps = STEPS_MS.map(step_ms => [subject_id, step_ms, beginOf(ended_ms, step_ms)])
    const counts = [{ sql: ADD_FIGURES, parameters: steps.flatMap(step => [...step, ...values]) }]
    if (!failure) return counts
    const { platform_reason, sip_code } = failure
    const parameters = steps.flatMap(step => [...step, platform_reason, sip_code ?? 0, 1])
    return [...counts, { sql: ADD_FAILURE, parameters }]
  })
}
