import type { Look, OpenAlert, Transition } from './types.ts'

/** `resolved_why` of an alert that ended with its acknowledgement. */
export const WHY_ACKNOWLEDGED = 'it was acknowledged'

const DAY_MS = 86_400_000

/** The time, and the calendar of the organization's time zone. `day` returns the day of an instant as YYYY-MM-DD. */
interface Calendar {
  readonly now: string
  day(instant: string): string
}

/**
 * Returns what happens to each open alert of a kind after one look (alert life: firing, acknowledged, resolved). An
 * alert has one finding, by its dedupe key, so that a lasting condition never fires twice. `answered` has the keys of
 * alerts that a person closed within the last day. They do not fire again so soon.
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

/** Returns why time or an acknowledgement ends an alert, whether or not its condition holds; null when neither does. */
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

/** The condition does not hold in this look. The policy's rule decides whether that resolves the alert. */
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
      // The same evidence counts only once.
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
