import { iso } from '../../core/runtime/clock.ts'
import { callFigures, mediaSummaries, topFailures } from '../../core/state/trunk-metrics.ts'
import {
  Count64,
  Instant,
  Int32,
  list,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { route } from './route.ts'

const HOURS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 } as const
const HOUR_MS = 3_600_000
const MAX_FAILURES = 10
const Window = oneOf('1h', '24h', '7d', '30d')
const TextOrNull = nullable(Type.String())

const TrunkMetrics = resource('TrunkMetrics', {
  acd_reason: TextOrNull,
  acd_seconds: nullable(Count64),
  answered: Count64,
  as_of: Instant,
  asr_7d_pct: TextOrNull,
  attempts: Count64,
  failed: Count64,
  pdd_ms: nullable(Count64),
  pdd_reason: TextOrNull,
  top_failures: list(
    resource('TopFailure', {
      calls: Count64,
      platform_reason: Type.String(),
      share_pct: Type.String(),
      sip_code: nullable(Int32),
    }),
  ),
  window_hours: Int32,
})

const TrunkDiagnostics = resource('TrunkDiagnostics', {
  media: resource('MediaDiagnostics', {
    as_of: Instant,
    jitter_ms: nullable(Type.Number()),
    mos: nullable(Type.Number()),
    no_media_calls: Count64,
    one_way_calls: Count64,
    packet_loss_pct: TextOrNull,
    transcoded_calls: Count64,
    unavailable_reason: TextOrNull,
    window_hours: Int32,
  }),
})
type Media = Static<typeof TrunkDiagnostics>['media']

const percent = (part: number, whole: number): string => ((part / whole) * 100).toFixed(1)

/** What signaling keeps of a leg in the call's record; a leg without statistics had none. */
interface LegSummary {
  readonly packets_received?: number
  readonly packets_lost?: number
  readonly jitter_ms?: number | null
  readonly mos?: number | null
}

/** Longer calls than this with packets one way only count as one-way (design section 4). */
const ONE_WAY_SECONDS = 4
const MAX_CALLS = 10_000

/** Figures over the legs of many calls: means weigh every leg alike, loss weighs every packet alike. */
export function mediaFigures(
  calls: readonly { readonly media: string | null; readonly duration_seconds: number }[],
): Omit<Media, 'as_of' | 'window_hours'> {
  const jitter: number[] = []
  const mos: number[] = []
  const counts = { received: 0, lost: 0, no_media: 0, one_way: 0, transcoded: 0, measured: 0 }
  for (const call of calls) {
    const { legs, transcoded } = readMedia(call.media)
    if (legs.length === 0) continue
    counts.measured += 1
    if (transcoded) counts.transcoded += 1
    const received = legs.map(leg => leg.packets_received ?? 0)
    if (received.every(packets => packets === 0)) counts.no_media += 1
    else if (legs.length > 1 && call.duration_seconds >= ONE_WAY_SECONDS && received.some(packets => packets === 0))
      counts.one_way += 1
    for (const leg of legs) {
      counts.received += leg.packets_received ?? 0
      counts.lost += leg.packets_lost ?? 0
      if (typeof leg.jitter_ms === 'number') jitter.push(leg.jitter_ms)
      if (typeof leg.mos === 'number') mos.push(leg.mos)
    }
  }
  const expected = counts.received + counts.lost
  return {
    jitter_ms: mean(jitter),
    mos: mean(mos),
    no_media_calls: counts.no_media,
    one_way_calls: counts.one_way,
    packet_loss_pct: expected === 0 ? null : ((counts.lost / expected) * 100).toFixed(2),
    transcoded_calls: counts.transcoded,
    unavailable_reason: counts.measured === 0 ? 'No answered call with media ended in this window.' : null,
  }
}

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * 100) / 100

/** A record's media: each leg's summary under its name, and how the two were joined. */
function readMedia(json: string | null): { readonly legs: readonly LegSummary[]; readonly transcoded: boolean } {
  const media = json === null ? null : (JSON.parse(json) as Record<string, unknown>)
  const legs = Object.values(media ?? {}).filter(
    (value): value is LegSummary => typeof value === 'object' && value !== null && 'packets_received' in value,
  )
  return { legs, transcoded: media?.['mode'] === 'transcode' }
}

const query = Type.Object({ window: optional(Window) }, { additionalProperties: false })

export const trunkMetrics = [
  route({
    method: 'get',
    path: '/trunks/{trunk_id}/metrics',
    summary: "Figures of a trunk's calls in a window",
    scope: 'call_diagnostics:read',
    query,
    replies: { 200: TrunkMetrics },
    async run({ db, trunk, query: asked, now, services }) {
      const now_ms = services.clock.now()
      const window_hours = HOURS[asked.window ?? '24h']
      const since = iso(now_ms - window_hours * HOUR_MS)
      const figures = await callFigures(db, trunk.id, since)
      const week = await callFigures(db, trunk.id, iso(now_ms - HOURS['7d'] * HOUR_MS))
      const { attempts, answered, pdd_ms } = figures
      const failed = attempts - answered
      const failures = await topFailures(db, trunk.id, since, MAX_FAILURES)
      return {
        status: 200,
        body: {
          acd_reason: answered === 0 ? 'No call was answered in this window.' : null,
          acd_seconds: answered === 0 ? null : Math.round(figures.answered_seconds / answered),
          answered,
          as_of: now,
          asr_7d_pct: week.attempts === 0 ? null : percent(week.answered, week.attempts),
          attempts,
          failed,
          pdd_ms,
          pdd_reason: pdd_ms === null ? 'No call of this window was rung or answered.' : null,
          top_failures: failures.map(row => ({ ...row, share_pct: percent(row.calls, failed) })),
          window_hours,
        },
      }
    },
  }),

  route({
    method: 'get',
    path: '/trunks/{trunk_id}/diagnostics',
    summary: "What was measured of the media of a trunk's calls in the last 24 hours",
    scope: 'call_diagnostics:read',
    replies: { 200: TrunkDiagnostics },
    async run({ db, trunk, now, services }) {
      const window_hours = HOURS['24h']
      const since = iso(services.clock.now() - window_hours * HOUR_MS)
      const calls = await mediaSummaries(db, trunk.id, since, MAX_CALLS)
      return { status: 200, body: { media: { as_of: now, ...mediaFigures(calls), window_hours } } }
    },
  }),
]
