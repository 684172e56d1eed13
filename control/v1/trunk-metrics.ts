import { mediaMetricsOf, metricsOf, WINDOW_HOURS } from '../../core/domain/metrics/index.ts'
import { failuresOfWindow, figuresOfWindow } from '../../core/state/calls/call-steps.ts'
import { Count64, Instant, Int32, list, nullable, oneOf, optional, resource, Type } from '../http/schema.ts'
import { route } from './route.ts'

const DEFAULT_WINDOW = '24h'
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

const query = Type.Object({ window: optional(oneOf('1h', '24h', '7d', '30d')) }, { additionalProperties: false })

const WINDOWS =
  'A call counts in the window in which it ended. The window of an hour begins with a whole minute, the others with a whole hour (UTC); 24h unless asked otherwise. Test calls are left out.'

export const trunkMetrics = [
  route({
    method: 'get',
    path: '/trunks/{trunk_id}/metrics',
    summary: "Figures of a trunk's calls in a window",
    description: `${WINDOWS} \`asr_7d_pct\` is of seven days whatever the window.`,
    scope: 'call_diagnostics:read',
    query,
    replies: { 200: TrunkMetrics },
    async run({ db, trunk, query: { window = DEFAULT_WINDOW }, now, services }) {
      const now_ms = services.clock.now()
      const figures = await figuresOfWindow(db, trunk.id, window, now_ms)
      const week = await figuresOfWindow(db, trunk.id, '7d', now_ms)
      const failures = await failuresOfWindow(db, trunk.id, window, now_ms)
      const { top_failures, ...metrics } = metricsOf(figures, week, failures)
      const body = { ...metrics, as_of: now, top_failures: [...top_failures], window_hours: WINDOW_HOURS[window] }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/trunks/{trunk_id}/diagnostics',
    summary: "What was measured of the media of a trunk's calls in a window",
    description: `${WINDOWS} Jitter and MOS are means over the legs that heard something, loss is over all packets. A call is one-way when one of its two legs heard nothing for four seconds and more.`,
    scope: 'call_diagnostics:read',
    query,
    replies: { 200: TrunkDiagnostics },
    async run({ db, trunk, query: { window = DEFAULT_WINDOW }, now, services }) {
      const figures = await figuresOfWindow(db, trunk.id, window, services.clock.now())
      return {
        status: 200,
        body: { media: { as_of: now, ...mediaMetricsOf(figures), window_hours: WINDOW_HOURS[window] } },
      }
    },
  }),
]
