/**
 * The times of a level's last takes, as its row keeps them under a cps ceiling: epoch milliseconds of the store's
 * clock, 13 digits each, newest first. The statement that counts a call puts its time in front, so that any number of
 * writers share the text.
 */

export const TIME_DIGITS = 13
const WINDOW_MS = 1000
/** A time this far ahead still counts as recent; a time further ahead is from before the clock was set back. */
const AHEAD_MS = 5000

/** The sliding second that ends now: its times lie between `first` and `last`. */
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

/** How many of the times are within the second. They end at the first one that is not, because older ones follow. */
export function takesWithin({ first, last }: Second, takes: string): number {
  let count = 0
  for (let at = 0; at < takes.length; at += TIME_DIGITS) {
    const time = takes.slice(at, at + TIME_DIGITS)
    if (time < first || time > last) break
    count++
  }
  return count
}
