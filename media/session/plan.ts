import type { PayloadUse, Settled } from '../../core/domain/codecs/negotiate.ts'
import { codecByName } from '../../core/domain/codecs/registry.ts'
import type { SampleRate, StreamDescription } from '../../native/index.ts'
import type { BrowserState } from '../webrtc/browser-transport.ts'

/** Converts the settled offer and answer to a stream description for the data plane. */
export function streamDescription(settled: Settled): StreamDescription {
  const { remote, telephone_event: event, comfort_noise: noise, also_receive: also, srtp, encoder } = settled
  const eventType = (payload_type: number, clock_rate = 8000) => ({
    payload_type,
    codec: 'TELEPHONE-EVENT',
    clock_rate,
  })
  const alsoEvents = also.events.map(({ payload_type, clock_rate_hz }) => eventType(payload_type, clock_rate_hz))
  return {
    remote:
      remote.address === null
        ? null
        : { address: remote.address, rtp_port: remote.rtp_port, rtcp_port: remote.rtcp_port },
    rtcp_mux: remote.rtcp_mux,
    direction: settled.direction,
    receive: settled.receive.map(payloadType),
    send: {
      ...payloadType(settled.send),
      ptime_ms: settled.ptime_ms,
      max_ptime_ms: settled.maxptime_ms,
      comfort_noise: noise?.send ?? null,
      ...(encoder.fec === undefined ? {} : { fec: encoder.fec }),
      ...(encoder.dtx === undefined ? {} : { dtx: encoder.dtx }),
      ...(encoder.max_bitrate === undefined ? {} : { bitrate: encoder.max_bitrate }),
      silence_frames: settled.silence_frames,
    },
    telephone_event: {
      receive: [...alsoEvents, ...(event ? [eventType(event.receive, event.clock_rate_hz)] : [])],
      send: event ? eventType(event.send, event.clock_rate_hz) : null,
    },
    comfort_noise: [...also.comfort_noise, ...(noise ? [noise.receive] : [])],
    // PBXs hang up when a stream stops for 30 to 60 s.
    fills_idle: true,
    srtp: srtp
      ? {
          suite: srtp.suite,
          send_key: Buffer.from(srtp.send_key, 'base64'),
          receive_key: Buffer.from(srtp.receive_key, 'base64'),
        }
      : null,
  }
}

/** Does the same for a browser's leg. ICE and DTLS supply path and keys; until then no media is sent or accepted. */
export function browserStreamDescription(settled: Settled, state: BrowserState | null): StreamDescription {
  return {
    ...streamDescription(settled),
    remote: state && { address: state.path.address, rtp_port: state.path.port, rtcp_port: state.path.port },
    rtcp_mux: true,
    direction: state ? settled.direction : 'inactive',
    srtp: state?.srtp ?? null,
  }
}

/** Returns the sample rate of prompts: at most what the codec can carry, 24 kHz for Opus. */
export function promptRate(settled: Settled): SampleRate {
  const rate_hz = codecByName(settled.codec).sample_rate_hz
  return rate_hz >= 24_000 ? 24_000 : rate_hz >= 16_000 ? 16_000 : 8000
}

function payloadType({ codec, payload_type }: PayloadUse) {
  return { payload_type, codec, clock_rate: codecByName(codec).clock_rate_hz }
}
