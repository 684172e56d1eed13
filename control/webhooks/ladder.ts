/**
 * Waits after the first, second, ... failed attempt. A receiver that is down for an hour gets everything afterwards.
 */
const WAITS_SECONDS = [2, 10, 30, 120, 300, 900, 1800, 3600, 7200] as const

/** No wait is longer, jitter included. */
export const LONGEST_WAIT_MS = 7200 * 1000 * 1.2

/**
 * Milliseconds until the next attempt, or null when there is none: nine repeats over about four hours. `random` is in
 * [0, 1): many callbacks that failed together do not come back together.
 */
export function waitAfter(attempts: number, random: number): number | null {
  const seconds = WAITS_SECONDS[attempts - 1]
  return seconds === undefined ? null : Math.round(seconds * 1000 * (1 + random * 0.2))
}
