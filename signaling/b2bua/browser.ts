import type { SipRequest } from '../drachtio/types.ts'
import type { LegPolicy, MediaKind } from './media.ts'

/** Which legs are a browser's, and what is offered to it. */

/** A peer on a WebSocket is a browser (RFC 7118): its media is ICE and DTLS-SRTP. */
export const kindOfTransport = (transport: string): MediaKind =>
  transport === 'ws' || transport === 'wss' ? 'webrtc' : 'rtp'

/** By the offer where there is one: DTLS-SRTP with a fingerprint (RFC 5763), wherever it comes from. */
export function kindOfCaller(invite: Pick<SipRequest, 'body' | 'source'>): MediaKind {
  const { body, source } = invite
  if (body === '') return kindOfTransport(source.transport)
  return /^m=audio \d+ (?:UDP|TCP)\/TLS\/RTP\/SAVPF?\s/m.test(body) && /^a=fingerprint:/m.test(body) ? 'webrtc' : 'rtp'
}

/** Every browser has these (RFC 7874 §3); G.711 first, because telephones have it too and a relay costs least. */
export const browserPolicy = (signalled_from: string | null): LegPolicy => ({
  codecs: ['PCMU', 'PCMA', 'OPUS'],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: [],
  signalled_from,
  telephone_event: true,
})
