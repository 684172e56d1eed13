const formatters = new Map<string, Intl.DateTimeFormat>()

// Creating a formatter costs fifty times as much as using it. The number of time zones bounds this map.
function formatter(time_zone: string): Intl.DateTimeFormat {
  const known = formatters.get(time_zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-CA', {
    timeZone: time_zone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  formatters.set(time_zone, made)
  return made
}

const QUARTER_MS = 900_000
const latest = new Map<string, { readonly quarter: number; readonly day: string }>()

/** Returns the day in a time zone as `YYYY-MM-DD`. Daily windows are these days. */
export function dayOf(epoch_ms: number, time_zone: string): string {
  // Offsets of time zones are multiples of a quarter of an hour, so no day begins within a quarter.
  const quarter = Math.floor(epoch_ms / QUARTER_MS)
  const known = latest.get(time_zone)
  if (known?.quarter === quarter) return known.day
  const day = formatter(time_zone).format(epoch_ms)
  latest.set(time_zone, { quarter, day })
  return day
}

/** No time zone is further behind UTC, and none further ahead. */
const BEHIND_MS = 12 * 3_600_000
const AHEAD_MS = 14 * 3_600_000

/**
 * Returns the earliest and the latest day that any time zone has at a moment. The day in one of them takes ICU, which
 * holds 8 MB of a process from its first use.
 */
export function daysAnywhere(epoch_ms: number): { readonly first: string; readonly last: string } {
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  return { first: day(epoch_ms - BEHIND_MS), last: day(epoch_ms + AHEAD_MS) }
}

/** Returns the end of the day in a time zone: the first moment of the next day, epoch ms. */
export function dayEnds(epoch_ms: number, time_zone: string): number {
  const today = dayOf(epoch_ms, time_zone)
  let before = epoch_ms
  // A day has at most 25 hours.
  let after = epoch_ms + 26 * 3_600_000
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (dayOf(middle, time_zone) === today) before = middle
    else after = middle
  }
  return after
}
