/**
 * A level's row under a CPS ceiling stores the times of its last takes: epoch milliseconds of the store's clock, 13
 * digits each, newest first. The statement that counts a call prepends its time, so any number of writers can share
 * the text.
 */

export const TIME_DIGITS = 13
const WINDOW_MS = 1000
/** A time up to this far ahead counts as recent. A time further ahead is from before the clock was set back. */
const AHEAD_MS = 5000

/** The sliding second that ends now. Its times lie between `first` and `last`. */
export interface Second {
  readonly now: string
  readonly first: string
  readonly last: string
}

export const secondAt = (now_ms: number): Second => ({
  now: timeText(now_ms),
  first: timeText(now_ms - WINDOW_MS + 1),
  last: timeText(now_ms + AHEAD_MS),
})

const timeText = (ms: number): string => String(Math.max(0, ms)).padStart(TIME_DIGITS, '0')

/** Returns the times after one more take; null when a take `limit` before is within the second. */
export function secondTakes(
  { now, first, last }: Second,
  takes: string,
  { limit, used }: { readonly limit: number | null; readonly used: number },
): string | null {
  if (limit === null) return ''
  const isRecent = (at: number): boolean => {
    const time = takes.slice(at, at + TIME_DIGITS)
    return time >= first && time <= last
  }
  if (isRecent(TIME_DIGITS * (limit - 1))) return null
  const recent = TIME_DIGITS * used
  return now + (isRecent(recent) ? takes : takes.slice(0, recent))
}

/** Counts the times within the second. It stops at the first time outside it, because only older ones follow. */
export function takesWithin({ first, last }: Second, takes: string): number {
  let count = 0
  for (let at = 0; at < takes.length; at += TIME_DIGITS) {
    const time = takes.slice(at, at + TIME_DIGITS)
    if (time < first || time > last) break
    count++
  }
  return count
}
