import type { EndFacts } from '../../core/domain/calls/endings.ts'
import type { Leg, LegCause } from './leg.ts'

/** The part of a leg's final figures that the CDR keeps. */
export function legSummary({ figures, codec }: Pick<Leg, 'figures' | 'codec'>): object | null {
  if (!figures) return codec === null ? null : { codec }
  return {
    codec: figures.codec ?? codec,
    secured: figures.secured,
    packets_received: figures.packets_received,
    packets_sent: figures.packets_sent,
    packets_lost: figures.packets_lost,
    jitter_ms: figures.jitter_ms,
    rtt_ms: figures.rtt_ms,
    mos: figures.mos,
    strangers_dropped: figures.strangers_dropped,
    remote_address: figures.remote_address,
    signalled_address: figures.signalled_address,
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
