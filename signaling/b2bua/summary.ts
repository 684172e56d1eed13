import type { EndFacts } from '../../core/domain/calls/endings.ts'
import type { Leg, LegCause } from './leg.ts'

/** The part of a leg's media statistics that the CDR keeps. */
export function legSummary(leg: Leg): object | null {
  const { stats, codec } = leg
  if (!stats) return codec === null ? null : { codec }
  return {
    codec: stats.codec ?? codec,
    secured: stats.secured,
    packets_received: stats.packets_received,
    packets_sent: stats.packets_sent,
    packets_lost: stats.packets_lost,
    jitter_ms: stats.jitter_ms,
    rtt_ms: stats.rtt_ms,
    mos: stats.mos,
    strangers_dropped: stats.strangers_dropped,
    remote_address: stats.remote_address,
    signalled_address: stats.signalled_address,
  }
}

/** Returns how a call ends when the far end, or a fault, has ended one of its legs. */
export function causeOfLeg(
  cause: LegCause,
  side: 'a' | 'b',
  headers: Readonly<Record<string, string>>,
): Omit<EndFacts, 'answered'> {
  if (cause === 'hung_up') return { cause: side === 'a' ? 'caller_hung_up' : 'called_hung_up', headers }
  return { cause }
}
