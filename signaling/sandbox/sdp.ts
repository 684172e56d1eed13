import sdpTransform from 'sdp-transform'
import type { Law } from './g711.ts'
import type { Remote } from './rtp.ts'

const LAW_BY_TYPE: Readonly<Record<number, Law>> = { 0: 'PCMU', 8: 'PCMA' }

/** The remote end of an offer that the sandbox can answer: one audio stream with G.711; null when there is none. */
export function remoteOf(sdp: string): Remote | null {
  const offer = sdpTransform.parse(sdp)
  const audio = offer.media.find(media => media.type === 'audio' && Number(media.port) > 0)
  const address = audio?.connection?.ip ?? offer.connection?.ip
  if (!audio || !address) return null
  const types = String(audio.payloads ?? '')
    .split(' ')
    .map(Number)
  const payload_type = types.find(type => LAW_BY_TYPE[type] !== undefined)
  const law = payload_type === undefined ? undefined : LAW_BY_TYPE[payload_type]
  if (payload_type === undefined || law === undefined) return null
  const events = audio.rtp.find(
    map => /^telephone-event$/i.test(String(map.codec)) && Number(map.rate ?? 8000) === 8000,
  )
  const event_payload_type = events?.payload === undefined ? null : Number(events.payload)
  return { address: String(address), port: Number(audio.port), law, payload_type, event_payload_type }
}

/** The answer (RFC 3264 §6): the one codec that is used, and telephone-event when it was offered. */
export function answerFor(remote: Remote, address: string, port: number): string {
  const ipVer = address.includes(':') ? 6 : 4
  const events = remote.event_payload_type
  return sdpTransform.write({
    version: 0,
    origin: { username: 'sandbox', sessionId: Date.now(), sessionVersion: 1, netType: 'IN', ipVer, address },
    name: 'sandbox',
    connection: { version: ipVer, ip: address },
    timing: { start: 0, stop: 0 },
    media: [
      {
        type: 'audio',
        port,
        protocol: 'RTP/AVP',
        payloads: [remote.payload_type, ...(events === null ? [] : [events])].join(' '),
        rtp: [
          { payload: remote.payload_type, codec: remote.law, rate: 8000 },
          ...(events === null ? [] : [{ payload: events, codec: 'telephone-event', rate: 8000 }]),
        ],
        fmtp: events === null ? [] : [{ payload: events, config: '0-15' }],
        ptime: 20,
        direction: 'sendrecv',
      },
    ],
  })
}
