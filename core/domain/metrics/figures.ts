import { mediaFigures } from './media.ts'

/** Upper ends of the sizes by which post-dial delays are counted, in milliseconds. */
export const PDD_BOUNDS_MS = [100, 250, 500, 1000, 1500, 2000, 3000, 5000, 8000, 15_000, 30_000] as const
type PddColumn = `pdd_to_${(typeof PDD_BOUNDS_MS)[number]}` | 'pdd_over'

/** The column that counts a delay: the first whose end the delay does not exceed. */
const pddColumn = (pdd_ms: number): PddColumn => {
  const bound = PDD_BOUNDS_MS.find(ms => pdd_ms <= ms)
  return bound === undefined ? 'pdd_over' : `pdd_to_${bound}`
}

const NO_DELAYS = Object.fromEntries([...PDD_BOUNDS_MS.map(ms => [`pdd_to_${ms}`, 0]), ['pdd_over', 0]]) as Readonly<
  Record<PddColumn, number>
>

/** The contribution of an ended call to its trunk's metrics. A step has the same columns, summed. */
export interface Figures extends Readonly<Record<PddColumn, number>> {
  readonly attempts: number
  readonly answered: number
  /** Whole seconds of answered calls. */
  readonly answered_seconds: number
  /** The number of calls with a known post-dial delay, and the sum of the delays. */
  readonly pdd_calls: number
  readonly pdd_ms: number
  /** Answered calls with media statistics. */
  readonly measured_calls: number
  readonly no_media_calls: number
  readonly one_way_calls: number
  readonly transcoded_calls: number
  readonly packets_received: number
  readonly packets_lost: number
  /** Legs with a jitter, and its sum in microseconds. Sums of integers are exact in any order. */
  readonly jitter_legs: number
  readonly jitter_us: number
  /** Legs with a MOS, and its sum in thousandths. */
  readonly mos_legs: number
  readonly mos_thousandths: number
}

export const NO_FIGURES: Figures = {
  ...NO_DELAYS,
  attempts: 0,
  answered: 0,
  answered_seconds: 0,
  pdd_calls: 0,
  pdd_ms: 0,
  measured_calls: 0,
  no_media_calls: 0,
  one_way_calls: 0,
  transcoded_calls: 0,
  packets_received: 0,
  packets_lost: 0,
  jitter_legs: 0,
  jitter_us: 0,
  mos_legs: 0,
  mos_thousandths: 0,
}

export const FIGURE_NAMES = Object.keys(NO_FIGURES) as readonly (keyof Figures)[]

/** The fields of a call detail record that metrics need. */
export interface EndedCall {
  readonly answered_at: string | null
  readonly duration_seconds: number
  readonly pdd_ms: number | null
  readonly status: string
  readonly reason: string | null
  readonly sip_code: number | null
  /** JSON of the legs' summaries; null without media. */
  readonly media: string | null
}

export function figuresOfCall(call: EndedCall): Figures {
  const answered = call.answered_at !== null
  return {
    ...NO_FIGURES,
    attempts: 1,
    ...(answered ? { answered: 1, answered_seconds: call.duration_seconds, ...mediaFigures(call) } : {}),
    ...(call.pdd_ms === null ? {} : { pdd_calls: 1, pdd_ms: call.pdd_ms, [pddColumn(call.pdd_ms)]: 1 }),
  }
}

/** Returns why a call was not answered: our reason, else the final status; null for an answered call. */
export function failureOfCall(call: EndedCall): FailureKind | null {
  if (call.answered_at !== null) return null
  return { platform_reason: call.reason ?? call.status, sip_code: call.sip_code }
}

interface FailureKind {
  readonly platform_reason: string
  readonly sip_code: number | null
}

export interface FailureCount extends FailureKind {
  readonly calls: number
}
