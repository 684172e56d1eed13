import { encoderOf, names, packing, remoteOf, roundPtime, typesOf } from './audio-line.ts'
import { alsoReceived, eventAttributes, eventFor, eventsAt, payloadOf } from './beside-audio.ts'
import { browserAttributes, browserSessionAttributes } from './browser.ts'
import type { Codec, CodecName } from './codec.ts'
import { comfortNoise } from './comfort-noise.ts'
import type { CryptoLine } from './crypto-line.ts'
import {
  type Continuity,
  NO_CONTINUITY,
  nextDescription,
  PayloadTypes,
  payloadAttributes,
  profile,
  refusedLine,
  remember,
  rtcpAttributes,
} from './description.ts'
import { askedDirection, both, isHold, reverse } from './direction.ts'
import { refuseSdp, type SdpRefused } from './refusal.ts'
import { codecByName } from './registry.ts'
import type { Direction, DtlsLine, MediaLine, OwnLine, OwnSdp, Payload, Sdp } from './sdp.ts'
import { cryptoAttribute, offeredCryptos, offeredSecurity, srtpKeys } from './security.ts'
import type { LocalSide, MediaPolicy, OtherLeg, Settled } from './settled.ts'
import { telephoneEvent } from './telephone-event.ts'

export { type AnswerRefusal, numberNotes, readAnswer } from './answer.ts'
export type { LocalSide, MediaPolicy, OtherLeg, PayloadUse, Settled } from './settled.ts'
export { type Continuity, NO_CONTINUITY, type SdpRefused }

/** Offer and answer (RFC 3264) of one leg: pure functions from both descriptions to the negotiated session. */

export interface Offer {
  readonly sdp: Sdp
  /** Index of the m= line in use. All others are rejected. */
  readonly audio: number
  /** Codecs in common, in the policy's order. */
  readonly choices: readonly { readonly codec: Codec; readonly payload: Payload }[]
  readonly crypto: CryptoLine | null
  readonly dtls: DtlsLine | null
  /** Whether the peer offers comfort noise, or silence frames of a common codec. */
  readonly comfort_noise: boolean
  readonly silence_frames: boolean
  /** Encoding names of all audio lines, as offered. */
  readonly offered: readonly string[]
  /** The direction that the peer requested, from its view. */
  readonly direction: Direction
  readonly hold: boolean
}

export type OfferRefusal = 'sdp_malformed' | 'no_common_codec' | 'srtp_required'

/** Reads an offer under a policy, or returns why it is refused. `audio` of an earlier exchange keeps its index. */
export function readOffer(
  sdp: Sdp,
  policy: MediaPolicy,
  continuity: Continuity = NO_CONTINUITY,
): Offer | SdpRefused<OfferRefusal> {
  const offered = sdp.lines.filter(line => line.kind === 'audio').flatMap(line => line.payloads.map(p => p.encoding))
  const order = [...sdp.lines.keys()]
  if (continuity.local) order.sort((a, b) => Number(b === continuity.audio) - Number(a === continuity.audio))
  let refusal = refuseSdp<OfferRefusal>('no_common_codec', 'no audio is offered')
  for (const index of order) {
    const line = sdp.lines[index]
    if (line?.kind === 'audio' && line.fault !== null) refusal = refuseSdp('sdp_malformed', line.fault)
    if (line?.kind !== 'audio' || line.port === 0) continue
    const choices = commonCodecs(line, policy)
    const security = offeredSecurity(line, policy.security)
    if (choices.length === 0)
      refusal = refuseSdp(
        'no_common_codec',
        `${line.where}: offered ${names(line)}, allowed ${policy.codecs.join(' ')}`,
      )
    else if ('refused' in security) refusal = refuseSdp(security.refused, `${line.where}: ${security.detail}`)
    else {
      const direction = askedDirection(line)
      const pauses = {
        comfort_noise: payloadOf(line, comfortNoise) !== undefined,
        silence_frames: choices.some(({ codec, payload }) => codec.silence_frames?.allowed(payload.fmtp)),
      }
      return { sdp, audio: index, choices, ...security, ...pauses, offered, direction, hold: isHold(direction) }
    }
  }
  return refusal
}

export interface Answered {
  readonly local: OwnSdp
  readonly settled: Settled
  readonly continuity: Continuity
}

/**
 * Builds the answer to an offer with one codec: the first of `order` that is offered (see `codecOrder`), else the
 * policy's first. It agrees to silence frames when the other leg has them too, or decodes.
 */
export function answerOffer(
  offer: Offer,
  own: LocalSide,
  continuity: Continuity,
  order: readonly CodecName[],
  other: OtherLeg | null = null,
): Answered | SdpRefused<'srtp_required'> {
  const line = offer.sdp.lines[offer.audio]
  const wanted = order.find(name => offer.choices.some(({ codec }) => codec.name === name))
  const choice = offer.choices.find(({ codec }) => codec.name === wanted) ?? offer.choices[0]
  if (!line || !choice) throw new Error('an offer that was read has an audio line and a codec')
  const { codec, payload } = choice
  const { crypto } = offer
  const srtp = crypto && srtpKeys(crypto, own)
  if (srtp && 'refused' in srtp) return srtp
  const event = own.policy.telephone_event ? eventFor(line, codec.clock_rate_hz) : undefined
  const noise = codec.comfort_noise ? payloadOf(line, comfortNoise) : undefined
  const useful = other !== null && (other.silence_frames || !other.codecs.includes(codec.name))
  const silence_frames = useful && (codec.silence_frames?.allowed(payload.fmtp) ?? false)
  const direction = both(reverse(offer.direction), own.direction)
  const ours: OwnLine = {
    kind: 'audio',
    port: own.rtp_port,
    protocol: line.protocol,
    formats: [payload, ...(noise ? [noise] : []), ...(event ? [event] : [])].map(used => String(used.payload_type)),
    attributes: [
      ...codecAttributes(codec, payload.payload_type, silence_frames),
      ...(noise ? payloadAttributes(noise.payload_type, comfortNoise, null) : []),
      ...(event ? eventAttributes(event.payload_type, event.clock_rate_hz) : []),
      ...(crypto && srtp ? [cryptoAttribute(crypto.tag, srtp.suite, srtp.send_key)] : []),
      `ptime:${roundPtime(line.ptime_ms, line.maxptime_ms)}`,
      ...rtcpAttributes(own),
      ...(line.rtcp_mux ? ['rtcp-mux'] : []),
      ...(offer.dtls && own.browser ? browserAttributes(own.browser, own, line.mid, 'passive') : []),
      direction,
    ],
  }
  const lines = offer.sdp.lines.map((theirs, index) => (index === offer.audio ? ours : refusedLine(theirs)))
  const local = nextDescription(own, continuity, lines, offer.dtls ? browserSessionAttributes(line.mid) : [])
  const settled: Settled = {
    codec: codec.name,
    send: { codec: codec.name, payload_type: payload.payload_type },
    receive: [{ codec: codec.name, payload_type: payload.payload_type }],
    ...packing(line),
    encoder: encoderOf(codec, payload, silence_frames),
    telephone_event: event
      ? { send: event.payload_type, receive: event.payload_type, clock_rate_hz: event.clock_rate_hz }
      : null,
    comfort_noise: noise ? { send: noise.payload_type, receive: noise.payload_type } : null,
    also_receive: alsoReceived(line, own.policy.telephone_event, typesOf([payload, noise, event])),
    silence_frames,
    direction,
    hold: offer.hold,
    remote: remoteOf(line, line.rtcp_mux),
    srtp,
    dtls: offer.dtls,
  }
  return { local, settled, continuity: remember(continuity, local, offer.audio, line.payloads) }
}

/**
 * Builds an offer: the codecs of `order`, or all of the policy, on the dialog's existing m= lines. A secured session
 * stays secured, with the suite in use; a re-offer never changes or drops keys. Comfort noise and silence frames are
 * offered when the other leg has them, and stay once agreed.
 */
export function makeOffer(
  own: LocalSide,
  continuity: Continuity,
  order: readonly CodecName[],
  current: Settled | null = null,
  other: OtherLeg | null = null,
): { readonly local: OwnSdp; readonly continuity: Continuity } {
  const codecs = (order.length > 0 ? order : own.policy.codecs).map(codecByName)
  const types = new PayloadTypes(continuity.payload_types)
  const audio = codecs.map(codec => ({ codec, payload_type: types.of(codec, codec.payload_type) }))
  const silence_frames = other?.silence_frames || current?.silence_frames || false
  const pauses = other?.comfort_noise || current?.comfort_noise
  const noise =
    pauses && codecs.some(codec => codec.comfort_noise)
      ? [{ payload_type: types.of(comfortNoise, comfortNoise.payload_type) }]
      : []
  const clocks = own.policy.telephone_event ? [...new Set(codecs.map(codec => codec.clock_rate_hz))] : []
  const events = clocks.map(clock => ({
    clock,
    payload_type: types.of(eventsAt(clock), telephoneEvent.payloadType(clock)),
  }))
  const suite = current?.srtp?.suite ?? null
  const secured = suite !== null || own.policy.security === 'sdes_srtp_required'
  const before = continuity.lines[continuity.audio]?.protocol ?? ''
  const mid = own.browser ? '0' : null
  const ours: OwnLine = {
    kind: 'audio',
    port: own.rtp_port,
    protocol: own.browser ? 'UDP/TLS/RTP/SAVPF' : profile(secured ? 'RTP/SAVP' : 'RTP/AVP', before),
    formats: [...audio, ...noise, ...events].map(({ payload_type }) => String(payload_type)),
    attributes: [
      ...audio.flatMap(({ codec, payload_type }) => codecAttributes(codec, payload_type, silence_frames)),
      ...noise.flatMap(({ payload_type }) => payloadAttributes(payload_type, comfortNoise, null)),
      ...events.flatMap(({ clock, payload_type }) => eventAttributes(payload_type, clock)),
      ...(secured ? offeredCryptos(own, suite) : []),
      'ptime:20',
      ...rtcpAttributes(own),
      ...(own.browser ? ['rtcp-mux', ...browserAttributes(own.browser, own, mid, 'actpass')] : []),
      own.direction,
    ],
  }
  const lines = continuity.lines.map((line, index) =>
    index === continuity.audio ? ours : { ...line, port: 0, attributes: [] },
  )
  if (lines.length === 0) lines.push(ours)
  const local = nextDescription(own, continuity, lines, own.browser ? browserSessionAttributes(mid) : [])
  return { local, continuity: { ...remember(continuity, local, continuity.audio, []), payload_types: types.all() } }
}

/**
 * Orders a leg's codecs: first those of the other leg, so that the bridge relays, then those that we can decode. It
 * omits codecs that can be neither relayed nor decoded. `related` is the other leg's negotiated codec, or those of its
 * pending offer; for a leg connected to the platform, its own codec.
 */
export function codecOrder(
  policy: MediaPolicy,
  related: readonly CodecName[],
  decodable: readonly CodecName[],
): CodecName[] {
  const relay = policy.codecs.filter(codec => related.includes(codec))
  return [...relay, ...policy.codecs.filter(codec => decodable.includes(codec) && !relay.includes(codec))]
}

/** Returns how two legs are bridged. Packets pass unchanged when both legs have the same codec. */
export function bridgeMode(a: Settled, b: Settled): 'relay' | 'transcode' {
  return a.codec === b.codec ? 'relay' : 'transcode'
}

function commonCodecs(line: MediaLine, policy: MediaPolicy): Offer['choices'] {
  return policy.codecs.flatMap(name => {
    const payload = line.payloads.find(candidate => candidate.codec?.name === name)
    return payload?.codec ? [{ codec: payload.codec, payload }] : []
  })
}

const codecAttributes = (codec: Codec, payload_type: number, silence_frames: boolean): string[] =>
  payloadAttributes(payload_type, codec, (silence_frames && codec.silence_frames?.fmtp) || codec.fmtp)
