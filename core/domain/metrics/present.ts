import { type FailureCount, FIGURE_NAMES, type Figures, NO_FIGURES, PDD_BOUNDS_MS } from './figures.ts'

/** Metrics of a window as the API returns them (spec, "Trunk metrics and diagnostics"). */
interface Metrics {
  readonly attempts: number
  readonly answered: number
  readonly failed: number
  /** Percentage with one decimal, always over seven days; null without attempts. */
  readonly asr_7d_pct: string | null
  readonly acd_seconds: number | null
  readonly acd_reason: string | null
  readonly pdd_ms: number | null
  readonly pdd_reason: string | null
  readonly top_failures: readonly (FailureCount & { readonly share_pct: string })[]
}

export const TOP_FAILURES = 10

/** Computes metrics. `failures` has each kind of the window once; `week` has the figures of the last seven days. */
export function metricsOf(window: Figures, week: Figures, failures: readonly FailureCount[]): Metrics {
  const { attempts, answered } = window
  const failed = attempts - answered
  return {
    attempts,
    answered,
    failed,
    asr_7d_pct: week.attempts === 0 ? null : percent(week.answered, week.attempts, 1),
    acd_seconds: answered === 0 ? null : Math.round(window.answered_seconds / answered),
    acd_reason: answered > 0 ? null : without(attempts, 'no call was answered'),
    pdd_ms: window.pdd_calls === 0 ? null : Math.round(window.pdd_ms / window.pdd_calls),
    pdd_reason: window.pdd_calls > 0 ? null : without(attempts, 'no target and no carrier rang or answered'),
    top_failures: [...failures]
      .sort(byFrequency)
      .slice(0, TOP_FAILURES)
      .map(failure => ({ ...failure, share_pct: percent(failure.calls, failed, 1) })),
  }
}

/**
 * Estimates a quantile of the post-dial delays, in whole milliseconds, as a straight line within the size that it falls
 * into. Null without a counted delay; the highest end when it is beyond that.
 */
export function pddQuantile(window: Figures, share: number): number | null {
  const counts = PDD_BOUNDS_MS.map(ms => window[`pdd_to_${ms}`])
  const all = counts.reduce((sum, count) => sum + count, 0) + window.pdd_over
  if (all === 0) return null
  let below = 0
  for (const [index, bound] of PDD_BOUNDS_MS.entries()) {
    const count = counts[index] ?? 0
    if (count > 0 && below + count >= share * all) {
      const least = PDD_BOUNDS_MS[index - 1] ?? 0
      return Math.round(least + ((bound - least) * (share * all - below)) / count)
    }
    below += count
  }
  return PDD_BOUNDS_MS.at(-1) ?? null
}

/** Mean MOS of a window's legs, with two decimals; null when none was measured. */
export const meanMos = ({ mos_legs, mos_thousandths }: Pick<Figures, 'mos_legs' | 'mos_thousandths'>): number | null =>
  mos_legs === 0 ? null : hundredths(mos_thousandths / mos_legs / 1000)

/** Mean interarrival jitter of a window's legs, in ms with two decimals; null when none was measured. */
export const meanJitter = ({ jitter_legs, jitter_us }: Pick<Figures, 'jitter_legs' | 'jitter_us'>): number | null =>
  jitter_legs === 0 ? null : hundredths(jitter_us / jitter_legs / 1000)

/** Adds up figures. */
export const sumOfFigures = (all: readonly Figures[]): Figures =>
  all.reduce(
    (sum, figures) =>
      Object.fromEntries(FIGURE_NAMES.map(name => [name, sum[name] + figures[name]])) as Record<keyof Figures, number>,
    NO_FIGURES,
  )

const without = (attempts: number, what: string): string =>
  attempts === 0 ? 'There was no call in this window.' : `In this window ${what}.`

/** Orders by calls, descending. Ties are ordered by name and code, so that the order is stable. */
const byFrequency = (a: FailureCount, b: FailureCount): number =>
  b.calls - a.calls ||
  (a.platform_reason < b.platform_reason ? -1 : a.platform_reason > b.platform_reason ? 1 : 0) ||
  (a.sip_code ?? 0) - (b.sip_code ?? 0)

interface MediaMetrics {
  /** Mean over all legs. */
  readonly jitter_ms: number | null
  readonly mos: number | null
  /** Percentage of all packets sent to us, with two decimals. */
  readonly packet_loss_pct: string | null
  readonly no_media_calls: number
  readonly one_way_calls: number
  readonly transcoded_calls: number
  readonly unavailable_reason: string | null
}

export function mediaMetricsOf(window: Figures): MediaMetrics {
  const expected = window.packets_received + window.packets_lost
  return {
    jitter_ms: meanJitter(window),
    mos: meanMos(window),
    packet_loss_pct: expected === 0 ? null : percent(window.packets_lost, expected, 2),
    no_media_calls: window.no_media_calls,
    one_way_calls: window.one_way_calls,
    transcoded_calls: window.transcoded_calls,
    unavailable_reason: window.measured_calls > 0 ? null : unavailable(window),
  }
}

function unavailable({ attempts, answered }: Figures): string {
  if (attempts === 0) return 'There was no call in this window.'
  if (answered === 0) return 'In this window no call was answered, so there was no media to measure.'
  return 'The calls of this window ended without statistics of their media.'
}

const percent = (part: number, whole: number, decimals: number): string => ((part / whole) * 100).toFixed(decimals)
const hundredths = (value: number): number => Math.round(value * 100) / 100
