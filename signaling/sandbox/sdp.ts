import { eventFor } from '../../core/domain/codecs/beside-audio.ts'
import { readSdp } from '../../core/domain/codecs/sdp.ts'
import type { Law } from './g711.ts'
import type { Remote } from './rtp.ts'

const LAWS: readonly string[] = ['PCMU', 'PCMA'] satisfies Law[]
const isLaw = (name: string | undefined): name is Law => name !== undefined && LAWS.includes(name)

/** Reads the far end of an offer; null unless the offer has an audio stream with G.711. */
export function farEndOf(sdp: string): Remote | null {
  const offer = readSdp(sdp)
  const audio = 'refused' in offer ? undefined : offer.sdp.lines.find(line => line.kind === 'audio' && line.port > 0)
  const chosen = audio?.payloads.find(({ codec }) => isLaw(codec?.name))
  const law = chosen?.codec?.name
  if (!audio?.address || !chosen || !isLaw(law)) return null
  const event_payload_type = eventFor(audio, 8000)?.payload_type ?? null
  return { address: audio.address, port: audio.port, law, payload_type: chosen.payload_type, event_payload_type }
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
