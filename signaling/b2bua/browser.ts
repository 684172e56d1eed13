import { readSdp } from '../../core/domain/codecs/sdp.ts'
import type { SipRequest } from '../drachtio/types.ts'
import type { LegPolicy, MediaKind } from './media.ts'

/** Recognizes the legs of browsers, and states the media policy for them. */

/** A peer on a WebSocket is a browser (RFC 7118): its media is ICE and DTLS-SRTP. */
export const kindOfTransport = (transport: string): MediaKind =>
  transport === 'ws' || transport === 'wss' ? 'webrtc' : 'rtp'

/** An offer decides by its content, whatever its transport: `webrtc` is DTLS-SRTP with a fingerprint (RFC 5763). */
export function kindOfCaller(invite: Pick<SipRequest, 'body' | 'source'>): MediaKind {
  const { body, source } = invite
  if (body === '') return kindOfTransport(source.transport)
  // Most callers are no browsers, and this text settles it.
  if (!/fingerprint/i.test(body)) return 'rtp'
  const reading = readSdp(body, () => source.address)
  const audio = 'refused' in reading ? [] : reading.sdp.lines.filter(line => line.kind === 'audio' && line.port !== 0)
  return audio.some(line => line.dtls && /^UDP\/TLS\/RTP\/SAVPF?$/.test(line.protocol)) ? 'webrtc' : 'rtp'
}

/** Codecs that every browser has (RFC 7874 §3). G.711 is first: telephones have it too, and a relay costs least. */
export const browserPolicy = (signalled_from: string | null): LegPolicy => ({
  codecs: ['PCMU', 'PCMA', 'OPUS'],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: [],
  signalled_from,
  telephone_event: true,
})
