import type { Codec, EncoderSettings } from './codec.ts'
import type { MediaLine, Payload } from './sdp.ts'
import type { Settled } from './settled.ts'

/** What a peer's audio line settles: its codecs, where to send, and how its packets are filled. */

export const names = (line: MediaLine) => line.payloads.map(payload => payload.encoding).join(' ') || 'nothing known'

export const typesOf = (payloads: readonly (Pick<Payload, 'payload_type'> | undefined)[]): number[] =>
  payloads.flatMap(payload => payload?.payload_type ?? [])

export function remoteOf(line: MediaLine, rtcp_mux: boolean): Settled['remote'] {
  const rtcp_port = rtcp_mux ? line.port : (line.rtcp_port ?? Math.min(line.port + 1, 65_535))
  return { address: line.address, rtp_port: line.port, rtcp_port, rtcp_mux }
}

export function packing(line: MediaLine): Pick<Settled, 'ptime_ms' | 'maxptime_ms'> {
  return { ptime_ms: roundPtime(line.ptime_ms, line.maxptime_ms), maxptime_ms: line.maxptime_ms }
}

/** Rounds to a packet time of 10 to 60 ms, in steps of 10. */
export function roundPtime(wanted_ms: number | null, most_ms: number | null): number {
  const ms = Math.min(wanted_ms ?? 20, most_ms ?? 60, 60)
  return Math.max(10, Math.floor(ms / 10) * 10)
}

/** Returns the settings that the peer requests for our encoder, without silence frames that were not agreed. */
export function encoderOf(codec: Codec, payload: Payload, silence_frames: boolean): EncoderSettings {
  const settings = codec.settings(payload.fmtp)
  return codec.silence_frames && !silence_frames ? { ...settings, dtx: false } : settings
}
