import type { Look, OpenAlert, Transition } from './types.ts'

/** `resolved_why` of an alert that a person's acknowledgement ended. */
export const WHY_ACKNOWLEDGED = 'it was acknowledged'

const DAY_MS = 86_400_000

/** Calendar of the organization's time zone, given as facts: `day` is YYYY-MM-DD of an instant there. */
interface Calendar {
  readonly now: string
  day(instant: string): string
}

/**
 * From one look and the alerts of its kind that are open to what happens to each (alert life: firing, acknowledged,
 * resolved). An alert has one finding by its dedupe key: a condition that goes on holding never fires twice. `answered`
 * are keys that a person has closed by a word within the last day: nobody is asked the same thing again so soon.
 */
export function transitions(
  look: Look,
  open: readonly OpenAlert[],
  calendar: Calendar,
  answered: ReadonlySet<string>,
): Transition[] {
  if (!look.available)
    return open
      .filter(alert => alert.source_state !== 'data_unavailable')
      .map(alert => ({ do: 'source', alert, source_state: 'data_unavailable' as const }))
  const known = new Map(open.map(alert => [alert.dedupe_key, alert]))
  const found = new Map(look.findings.map(finding => [finding.dedupe_key, finding]))
  const steps: Transition[] = []
  for (const finding of found.values()) {
    const alert = known.get(finding.dedupe_key)
    if (!alert) {
      if (!answered.has(finding.dedupe_key)) steps.push({ do: 'fire', finding })
    } else if (timed(alert, calendar) === null) steps.push({ do: 'keep', alert, finding })
  }
  for (const alert of open) {
    if (alert.source_state === 'data_unavailable') steps.push({ do: 'source', alert, source_state: 'measured' })
    const why = timed(alert, calendar)
    if (why !== null) steps.push({ do: 'resolve', alert, why })
    else if (!found.has(alert.dedupe_key)) steps.push(...cleared(alert, look, calendar))
  }
  return steps
}

/** Rules that end an alert by time or by a person's word, whether its condition holds or not. */
function timed(alert: OpenAlert, { now, day }: Calendar): string | null {
  switch (alert.resolution.rule) {
    case 'day_rollover':
      return day(now) > day(alert.fired_at) ? 'a new day began' : null
    case 'month_rollover':
      return day(now).slice(0, 7) > day(alert.fired_at).slice(0, 7) ? 'a new month began' : null
    case 'acknowledged_or_24h':
      if (alert.state === 'acknowledged') return WHY_ACKNOWLEDGED
      return Date.parse(now) - Date.parse(alert.fired_at) >= DAY_MS ? '24 hours have passed' : null
    default:
      return null
  }
}

/** The condition does not hold in this look: whether that is enough, the policy's rule says. */
function cleared(alert: OpenAlert, look: Look, { now }: Calendar): Transition[] {
  if (look.gone.has(alert.dedupe_key)) return [{ do: 'resolve', alert, why: 'its subject is no longer watched' }]
  const { rule, for_seconds, count } = alert.resolution
  const seen = look.well.get(alert.dedupe_key)
  switch (rule) {
    case 'below_threshold': {
      const since = alert.below_since ?? now
      const waited_ms = Date.parse(now) - Date.parse(since)
      if (waited_ms >= (for_seconds ?? 0) * 1000) return [{ do: 'resolve', alert, why: 'the value is below again' }]
      if (alert.below_since !== null) return []
      return [{ do: 'count', alert, below_since: since, successes: alert.successes, version: alert.version }]
    }
    case 'consecutive_successes': {
      // The same evidence looked at twice is one success.
      if (seen === undefined || seen <= (alert.version ?? 0)) return []
      const successes = alert.successes + 1
      if (successes >= (count ?? 1)) return [{ do: 'resolve', alert, why: `${successes} good results in a row` }]
      return [{ do: 'count', alert, below_since: alert.below_since, successes, version: seen }]
    }
    case 'later_revision':
      return seen !== undefined && seen >= (alert.version ?? 0)
        ? [{ do: 'resolve', alert, why: `revision ${seen} is in force` }]
        : []
    default:
      return []
  }
}
