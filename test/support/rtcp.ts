import { CompoundPacket, ReceiverReportPacket, ReceptionReport, VmExtendedReport, XrPacket } from 'rtp.js/packets'
import { dataViewToNodeBuffer } from 'rtp.js/utils'

/** What a peer reports by RTCP about the stream that we send. */
interface PeerReport {
  /** SSRC of the reporting peer. */
  readonly ssrc: number
  /** SSRC of our stream. */
  readonly about: number
  readonly lost: number
  /** In units of the RTP clock. */
  readonly jitter: number
  /** Middle 32 bits of the NTP time of our last sender report; 0 when the peer has received none. */
  readonly last_sr?: number
  /** MOS of listening quality, times ten (RFC 3611 §4.7.5). */
  readonly mos_lq: number
}

/** Returns a compound packet: a receiver report, then VoIP metrics (RFC 3611 §4.7). */
export function reportWithVoipMetrics({ ssrc, about, lost, jitter, last_sr = 0, mos_lq }: PeerReport): Buffer {
  const reception = new ReceptionReport()
  reception.setSsrc(about)
  reception.setTotalLost(lost)
  reception.setJitter(jitter)
  reception.setLastSRTimestamp(last_sr)
  reception.setDelaySinceLastSR(0)
  const receiver = new ReceiverReportPacket()
  receiver.setSsrc(ssrc)
  receiver.addReport(reception)
  const metrics = new VmExtendedReport()
  metrics.setSsrc(about)
  metrics.setMosLQ(mos_lq)
  const extended = new XrPacket()
  extended.setSsrc(ssrc)
  extended.addReport(metrics)
  const compound = new CompoundPacket()
  compound.addPacket(receiver)
  compound.addPacket(extended)
  compound.serialize()
  return dataViewToNodeBuffer(compound.getView())
}
