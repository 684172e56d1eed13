import sdpTransform from 'sdp-transform'
import type { Law } from './g711.ts'
import type { Remote } from './rtp.ts'

const LAW_BY_TYPE: Readonly<Record<number, Law>> = { 0: 'PCMU', 8: 'PCMA' }

/** Reads the far end of an offer; null unless the offer has an audio stream with G.711. */
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

/** Builds the answer (RFC 3264 §6): one codec, and telephone-event if it was offered. */
export function answerFor(remote: Remote, address: string, port: number): string {
  const family = address.includes(':') ? 'IP6' : 'IP4'
  const { payload_type, law, event_payload_type: events } = remote
  const lines = [
    'v=0',
    `o=sandbox ${Date.now()} 1 IN ${family} ${address}`,
    's=sandbox',
    `c=IN ${family} ${address}`,
    't=0 0',
    `m=audio ${port} RTP/AVP ${payload_type}${events === null ? '' : ` ${events}`}`,
    `a=rtpmap:${payload_type} ${law}/8000`,
    ...(events === null ? [] : [`a=rtpmap:${events} telephone-event/8000`, `a=fmtp:${events} 0-15`]),
    'a=ptime:20',
    'a=sendrecv',
  ]
  return `${lines.join('\r\n')}\r\n`
}
