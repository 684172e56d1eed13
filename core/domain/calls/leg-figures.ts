import { counted } from '../text/counted.ts'
/** The final media figures of a leg, from the counters of its whole life, and their sums (design section 11). */

/** The counters of a leg that the figures need, as the media worker reports them. */
export interface MeasuredLeg {
  readonly codec: string | null
  readonly codecs: readonly { readonly codec: string; readonly from: string }[]
  readonly secured: boolean
  readonly packets_received: number
  readonly packets_sent: number
  readonly bytes_received: number
  readonly bytes_sent: number
  readonly packets_lost: number
  readonly packets_late: number
  readonly packets_discarded: number
  readonly packets_unsent: number
  readonly jitter_mean_ms: number
  readonly jitter_max_ms: number
  readonly without_media_ms: number
  readonly remote_packets_lost: number | null
  readonly remote_jitter_ms: number | null
  readonly rtt_ms: number | null
  readonly mos: number | null
  readonly remote_mos: number | null
  readonly first_packet_at: string | null
  readonly last_packet_at: string | null
  readonly strangers_dropped: number
  readonly remote_address: string | null
  readonly remote_port: number | null
  readonly signalled_address: string | null
  readonly signalled_port: number | null
}

interface Measured {
  readonly leg_id: string
  readonly side: LegFigures['side']
  /** Epoch milliseconds; null for a leg that was never answered. */
  readonly answered_ms: number | null
  readonly ended_ms: number
  /** Whether these are the last counters. They are not when the media worker was lost before the leg ended. */
  readonly complete: boolean
}

/** Counts are RTP packets and the octets of their payloads; `received` is what the leg's peer sent. */
export interface LegFigures {
  readonly leg_id: string
  /** `application`: an end of a wire within the platform. */
  readonly side: 'caller' | 'called' | 'application'
  readonly answered_at: string | null
  readonly ended_at: string
  readonly complete: boolean
  readonly codec: string | null
  readonly codecs: { codec: string; from: string }[]
  readonly secured: boolean
  readonly packets_received: number
  readonly packets_sent: number
  readonly octets_received: number
  readonly octets_sent: number
  /** Lost on the way to us (RFC 3550 §A.3), and on the way to the peer by its last report; null without a report. */
  readonly packets_lost: number
  readonly remote_packets_lost: number | null
  readonly packets_late: number
  /** Received but not used: duplicates, unknown types, strangers. Sent in vain: refused by the system. */
  readonly packets_discarded: number
  readonly packets_unsent: number
  readonly strangers_dropped: number
  /** Mean and maximum of the interarrival jitter (RFC 3550 §6.4.1). Null when nothing was received. */
  readonly jitter_ms: number | null
  readonly jitter_max_ms: number | null
  readonly remote_jitter_ms: number | null
  readonly rtt_ms: number | null
  readonly mos: number | null
  readonly remote_mos: number | null
  /** Seconds of the answered leg in which packets were due and none came for more than a second. */
  readonly seconds_without_media: number
  readonly remote_address: string | null
  readonly remote_port: number | null
  readonly signalled_address: string | null
  readonly signalled_port: number | null
}

/** The figures of a leg in a sentence. */
export function figuresInWords(leg: LegFigures): string {
  const address = leg.remote_address === null ? 'no address' : `${leg.remote_address} port ${leg.remote_port}`
  const figures = [
    `${counted(leg.packets_received, 'packet')} received, ${leg.packets_sent} sent, ${leg.packets_lost} lost`,
    ...(leg.jitter_ms === null ? [] : [`jitter ${leg.jitter_ms.toFixed(1)} ms`]),
    ...(leg.rtt_ms === null ? [] : [`round trip ${leg.rtt_ms.toFixed(0)} ms`]),
    ...(leg.mos === null ? [] : [`MOS ${leg.mos.toFixed(2)}`]),
  ]
  const sound = `${leg.secured ? 'SRTP' : 'RTP'} with ${leg.codec ?? 'no codec'}`
  return `Leg ${leg.leg_id} (${leg.side}), ${sound}, ${address}: ${figures.join(', ')}.`
}

/** A shorter wait for the first packet is not a time without media. */
const PATIENCE_MS = 1000

export function legFigures(
  stats: MeasuredLeg,
  { leg_id, side, answered_ms, ended_ms, complete }: Measured,
): LegFigures {
  const heard = stats.packets_received > 0
  return {
    leg_id,
    side,
    answered_at: answered_ms === null ? null : new Date(answered_ms).toISOString(),
    ended_at: new Date(ended_ms).toISOString(),
    complete,
    codec: stats.codec,
    codecs: stats.codecs.map(codec => ({ ...codec })),
    secured: stats.secured,
    packets_received: stats.packets_received,
    packets_sent: stats.packets_sent,
    octets_received: stats.bytes_received,
    octets_sent: stats.bytes_sent,
    packets_lost: stats.packets_lost,
    remote_packets_lost: stats.remote_packets_lost,
    packets_late: stats.packets_late,
    packets_discarded: stats.packets_discarded,
    packets_unsent: stats.packets_unsent,
    strangers_dropped: stats.strangers_dropped,
    jitter_ms: heard ? stats.jitter_mean_ms : null,
    jitter_max_ms: heard ? stats.jitter_max_ms : null,
    remote_jitter_ms: stats.remote_jitter_ms,
    rtt_ms: stats.rtt_ms,
    mos: heard ? stats.mos : null,
    remote_mos: stats.remote_mos,
    seconds_without_media: withoutMedia(stats, answered_ms, ended_ms),
    remote_address: stats.remote_address,
    remote_port: stats.remote_port,
    signalled_address: stats.signalled_address,
    signalled_port: stats.signalled_port,
  }
}

/** The wait for the first packet after the answer, and the gaps since. */
function withoutMedia(stats: MeasuredLeg, answered_ms: number | null, ended_ms: number): number {
  if (answered_ms === null) return 0
  const talked_ms = Math.max(0, ended_ms - answered_ms)
  const first_ms = stats.first_packet_at === null ? ended_ms : Date.parse(stats.first_packet_at)
  const wait_ms = Math.max(0, first_ms - answered_ms)
  const silent_ms = (wait_ms > PATIENCE_MS ? wait_ms : 0) + stats.without_media_ms
  return Math.round(Math.min(silent_ms, talked_ms) / 1000)
}

/** What can be added up over the legs of a call, a trunk or a carrier. */
export const SUMMED = [
  'packets_received',
  'packets_sent',
  'octets_received',
  'octets_sent',
  'packets_lost',
  'packets_late',
  'packets_discarded',
  'packets_unsent',
] as const

type LegTotals = Readonly<Record<(typeof SUMMED)[number], number>>

export function sumOfLegs(legs: readonly Pick<LegFigures, (typeof SUMMED)[number]>[]): LegTotals {
  const sum = (name: (typeof SUMMED)[number]) => legs.reduce((total, leg) => total + leg[name], 0)
  return Object.fromEntries(SUMMED.map(name => [name, sum(name)])) as Record<(typeof SUMMED)[number], number>
}
