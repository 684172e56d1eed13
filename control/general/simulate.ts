import type { CallStatus } from '../../core/state/index.ts'

/** A step of a simulated call: the status that it has from `after_seconds` after its creation. */
type Step = readonly [after_seconds: number, status: CallStatus]

const ANSWERED: readonly Step[] = [
  [0, 'queued'],
  [1, 'ringing'],
  [3, 'in-progress'],
  [10, 'completed'],
]

/** Flows by the last four digits of the number, as in the sandbox carrier (design section 9). Others are answered. */
export const FLOWS: Readonly<Record<string, readonly Step[]>> = {
  '0002': [
    [0, 'queued'],
    [1, 'ringing'],
    [2, 'busy'],
  ],
  '0003': [
    [0, 'queued'],
    [1, 'ringing'],
    [61, 'no-answer'],
  ],
  '0005': [
    [0, 'queued'],
    [1, 'failed'],
  ],
  '0006': [
    [0, 'queued'],
    [1, 'ringing'],
    [4, 'in-progress'],
    [9, 'completed'],
  ],
  '0007': [
    [0, 'queued'],
    [2, 'failed'],
  ],
}

/** Returns the status of a simulated call by its age. A negative age, after a clock step, means `queued`. */
export function simulatedStatus(to_number: string, age_ms: number): CallStatus {
  const flow = FLOWS[to_number.slice(-4)] ?? ANSWERED
  let status: CallStatus = 'queued'
  for (const [after_seconds, next] of flow) if (age_ms >= after_seconds * 1000) status = next
  return status
}
