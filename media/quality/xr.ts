import { CompoundPacket, VmExtendedReport, XrPacket } from 'rtp.js/packets'
import { nodeBufferToDataView } from 'rtp.js/utils'

/** The quality at which a peer hears us, from the VoIP metrics block of RTCP XR (RFC 3611 §4.7). */
export interface VoipMetrics {
  /** 1 to 5; null when the peer reports none. */
  readonly mos_listening: number | null
  readonly mos_conversational: number | null
  readonly r_factor: number | null
  readonly loss: number
  readonly discard: number
  readonly round_trip_ms: number
}

const XR = 207
const UNAVAILABLE = 127

/** Reads the VoIP metrics of a compound RTCP packet; null when it holds none or is malformed. */
export function readVoipMetrics(packet: Buffer): VoipMetrics | null {
  // Most packets have no XR, and a look at the types costs less than parsing.
  if (!packetTypes(packet).includes(XR)) return null
  try {
    const compound = new CompoundPacket(nodeBufferToDataView(packet))
    const reports = compound.getPackets().flatMap(part => (part instanceof XrPacket ? part.getReports() : []))
    const metrics = reports.find(report => report instanceof VmExtendedReport)
    return metrics ? voipMetrics(metrics) : null
  } catch {
    // rtp.js throws on malformed blocks. Treat them as absent.
    return null
  }
}

function voipMetrics(block: VmExtendedReport): VoipMetrics {
  const rated = (value: number, scale: number) => (value === UNAVAILABLE || value === 0 ? null : value / scale)
  return {
    mos_listening: rated(block.getMosLQ(), 10),
    mos_conversational: rated(block.getMosCQ(), 10),
    r_factor: rated(block.getRFactor(), 1),
    loss: block.getLossRate() / 256,
    discard: block.getDiscardRate() / 256,
    round_trip_ms: block.getRoundTripDelay(),
  }
}

/** Returns the types of the parts of a compound packet (RFC 3550 §6.4.1), as far as their lengths are valid. */
function packetTypes(packet: Buffer): number[] {
  const types: number[] = []
  for (let at = 0; at + 4 <= packet.length; at += 4 * (packet.readUInt16BE(at + 2) + 1)) types.push(packet[at + 1] ?? 0)
  return types
}
