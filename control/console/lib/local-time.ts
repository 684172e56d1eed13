const WRITTEN = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?$/

/**
 * Reads what a person writes for a date and time: `2026-11-26 14:30`, or the date alone for its midnight. Returns it as
 * `2026-11-26T14:30`; null when it is no such time.
 */
export function localTimeOf(text: string): string | null {
  const [, day, time = '00:00'] = WRITTEN.exec(text.trim()) ?? []
  if (day === undefined) return null
  const local = `${day}T${time}`
  const at_ms = Date.parse(`${local}Z`)
  // Date.parse takes the 30th of February as the 2nd of March.
  return !Number.isNaN(at_ms) && new Date(at_ms).toISOString().startsWith(local) ? local : null
}

/** Writes a date and time as `localTimeOf` reads it. */
export const localTimeText = (local: string): string => local.replace('T', ' ')
