/** Waits after the first, second, ... failed attempt. A receiver that was down for an hour still gets everything. */
const WAITS_SECONDS = [2, 10, 30, 120, 300, 900, 1800, 3600, 7200] as const

/** The longest wait, including jitter. */
export const LONGEST_WAIT_MS = 7200 * 1000 * 1.2

/**
 * Returns the milliseconds until the next attempt, or null after nine retries over about four hours. `random`, in
 * [0, 1), adds jitter so that callbacks that failed together are not retried together.
 */
export function waitAfter(attempts: number, random: number): number | null {
  const seconds = WAITS_SECONDS[attempts - 1]
  return seconds === undefined ? null : Math.round(seconds * 1000 * (1 + random * 0.2))
}
