import type { Settled } from '../../core/domain/codecs/negotiate.ts'
import type { StreamStats } from '../../native/index.ts'
import type { LegStats } from '../protocol/schema.ts'
import { mosOfR, rFactor } from './emodel.ts'
import type { VoipMetrics } from './xr.ts'

interface LegFacts {
  readonly settled: Settled | null
  readonly codecs: LegStats['codecs']
  readonly latched: { readonly address: string; readonly port: number } | null
  readonly voip_metrics: VoipMetrics | null
  /** The path of a browser's leg; null for other legs. */
  readonly browser: { readonly path: { readonly address: string; readonly port: number } } | null
}

/** Returns the counters of a stream in the form of the protocol, with the quality rating derived from them. */
export function legStats(
  stats: StreamStats | null,
  { settled, codecs, latched, voip_metrics, browser }: LegFacts,
): LegStats {
  const r = stats && settled ? rating(stats, settled) : null
  const signalled = settled?.remote ?? null
  const used =
    browser?.path ?? latched ?? (signalled?.address ? { address: signalled.address, port: signalled.rtp_port } : null)
  return {
    codec: settled?.codec ?? null,
    secured: settled?.srtp != null || browser !== null,
    packets_received: stats?.packets_received ?? 0,
    packets_sent: stats?.packets_sent ?? 0,
    bytes_received: stats?.bytes_received ?? 0,
    bytes_sent: stats?.bytes_sent ?? 0,
    packets_lost: stats?.packets_lost ?? 0,
    packets_duplicate: stats?.packets_duplicate ?? 0,
    packets_reordered: stats?.packets_reordered ?? 0,
    loss_bursts: stats?.loss_bursts ?? 0,
    longest_burst: stats?.longest_burst ?? 0,
    jitter_ms: round(stats?.jitter_ms ?? 0, 2),
    jitter_max_ms: round(stats?.jitter_max_ms ?? 0, 2),
    jitter_mean_ms: round(stats?.jitter_mean_ms ?? 0, 2),
    without_media_ms: Math.round(stats?.without_media_ms ?? 0),
    codecs: [...codecs],
    packets_late: stats?.late_frames ?? 0,
    packets_discarded: stats === null ? 0 : discarded(stats),
    packets_unsent: stats?.send_failed ?? 0,
    remote_packets_lost: stats?.remote_packets_lost ?? null,
    remote_jitter_ms: stats?.remote_jitter_ms == null ? null : round(stats.remote_jitter_ms, 2),
    rtt_ms: stats?.rtt_ms == null ? null : round(stats.rtt_ms, 2),
    mos: r === null ? null : round(mosOfR(r), 2),
    r_factor: r === null ? null : round(r, 1),
    remote_mos: voip_metrics?.mos_listening ?? null,
    first_packet_at: time(stats?.first_packet_at),
    last_packet_at: time(stats?.last_packet_at),
    strangers_dropped: stats?.strangers_dropped ?? 0,
    srtp_dropped: (stats?.srtp_auth_failed ?? 0) + (stats?.srtp_replayed ?? 0),
    policed_dropped: stats?.policed_dropped ?? 0,
    malformed_dropped: stats?.malformed_dropped ?? 0,
    remote_address: used?.address ?? null,
    remote_port: used?.port ?? null,
    signalled_address: signalled?.address ?? null,
    signalled_port: signalled?.rtp_port ?? null,
  }
}

const discarded = (stats: StreamStats): number =>
  stats.packets_duplicate +
  stats.unexpected_dropped +
  stats.malformed_dropped +
  stats.policed_dropped +
  stats.strangers_dropped +
  stats.srtp_auth_failed +
  stats.srtp_replayed

/** Rates what a stream receives. A relay has no jitter buffer, so the listener's is estimated from the jitter. */
function rating(stats: StreamStats, settled: Settled): number | null {
  if (stats.packets_received === 0) return null
  const expected = stats.packets_received + stats.packets_lost
  const buffer_ms = Math.max(stats.jitter_buffer_ms, 20, 2 * stats.jitter_mean_ms)
  // Only the number of bursts and the longest one are known. Taking all bursts to be that long gives a lower bound for
  // the number of loss events.
  const events = stats.packets_lost - stats.loss_bursts * Math.max(0, stats.longest_burst - 1)
  const mean_burst = stats.packets_lost / Math.max(events, stats.loss_bursts, 1)
  const random_burst = 1 / (1 - stats.packets_lost / expected)
  return rFactor({
    codec: settled.codec,
    loss: (stats.packets_lost + stats.late_frames) / expected,
    burst_ratio: mean_burst / random_burst,
    delay_ms: (stats.rtt_ms ?? 0) / 2 + buffer_ms + settled.ptime_ms,
  })
}

const round = (value: number, digits: number) => Math.round(value * 10 ** digits) / 10 ** digits
const time = (epoch_ms: number | null | undefined) => (epoch_ms == null ? null : new Date(epoch_ms).toISOString())
