const DAY_MS = 86_400_000
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/**
 * The query of the last `days` days. It ends tomorrow, because the days are those of the organizations: in the zone of
 * some it is that day already.
 */
export const lastDays = (days: number, now_ms = Date.now()): string =>
  `from=${dayOf(now_ms - (days - 1) * DAY_MS)}&to=${dayOf(now_ms + DAY_MS)}`
