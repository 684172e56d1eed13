import type { AlertSeverity } from './types.ts'

/** Converts `HH:MM` to minutes of the day. */
const minutesOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5))

/**
 * Returns how long quiet hours delay a message: 0 outside of them, and for critical alerts. `clock` is the
 * organization's time of day, `HH:MM`. Quiet hours may span midnight. Equal ends mean no quiet hours.
 */
export function quietFor(
  severity: AlertSeverity,
  quiet: { readonly quiet_from: string | null; readonly quiet_to: string | null },
  clock: string,
): number {
  if (severity === 'critical' || quiet.quiet_from === null || quiet.quiet_to === null) return 0
  const from = minutesOf(quiet.quiet_from)
  const to = minutesOf(quiet.quiet_to)
  const now = minutesOf(clock)
  const within = from <= to ? now >= from && now < to : now >= from || now < to
  return within ? ((to - now + 1440) % 1440) * 60_000 : 0
}
