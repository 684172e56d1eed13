/**
 * Metrics of trunks are sums per time step, updated as calls end. So reading a window costs the number of its steps,
 * not of its calls. A call counts in the step in which it ended.
 */

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/** Lengths of the stored steps. */
export const STEPS_MS = [MINUTE_MS, HOUR_MS] as const
type StepMs = (typeof STEPS_MS)[number]

/** Windows that can be asked for, in hours (spec, "Trunk metrics and diagnostics"). */
export const WINDOW_HOURS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 } as const
export type MetricsWindow = keyof typeof WINDOW_HOURS

/** How long a step is of use: the longest window read from it, and the step that a window begins in. */
export const KEPT_MS: Readonly<Record<StepMs, number>> = {
  [MINUTE_MS]: 2 * HOUR_MS,
  [HOUR_MS]: (WINDOW_HOURS['30d'] + 1) * HOUR_MS,
}

/** Which steps a window is read from: an hour from minutes, the others from hours. */
export const stepOf = (window: MetricsWindow): StepMs => (window === '1h' ? MINUTE_MS : HOUR_MS)

export const beginOf = (at_ms: number, step_ms: StepMs): number => Math.floor(at_ms / step_ms) * step_ms

/** Where a window begins: with the whole step that its first instant lies in. */
export const windowBegin = (now_ms: number, window: MetricsWindow): number =>
  beginOf(now_ms - WINDOW_HOURS[window] * HOUR_MS, stepOf(window))
