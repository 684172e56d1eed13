import { type BrowserSide, browserAttributes, browserSessionAttributes, refuseBrowser } from './browser.ts'
import type { Codec, CodecName, EncoderSettings } from './codec.ts'
import { comfortNoise } from './comfort-noise.ts'
import { type CryptoLine, SRTP_SUITES, type SrtpSuite, sameKey } from './crypto-line.ts'
import { codecByName } from './registry.ts'
import type { Direction, DtlsLine, MediaLine, OwnLine, OwnSdp, Payload, Sdp } from './sdp.ts'
import { telephoneEvent } from './telephone-event.ts'

/** Offer and answer (RFC 3264) of one leg as functions from what both sides said to what holds between them. */

export interface MediaPolicy {
  /** In order of preference. */
  readonly codecs: readonly CodecName[]
  readonly security: 'rtp' | 'sdes_srtp_required' | 'dtls_srtp'
  readonly telephone_event: boolean
}

/** Our end of the leg. */
export interface LocalSide {
  readonly session_id: string
  readonly address: string
  readonly rtp_port: number
  readonly rtcp_port: number
  readonly policy: MediaPolicy
  /** Base64 key and salt for each suite, made for this leg alone. */
  readonly keys: Readonly<Record<SrtpSuite, string>>
  /** Our end of ICE and DTLS, for policies of `dtls_srtp`. */
  readonly browser: BrowserSide | null
  /** What we want to do; an answer may allow less. */
  readonly direction: Direction
}

/** What the other leg of a bridge means for the SDP of this one. */
export interface OtherLeg {
  /** Its settled codec, or what its pending offer allows. */
  readonly codecs: readonly CodecName[]
  /** Its peer tells pauses by comfort noise, or would. */
  readonly comfort_noise: boolean
  /** Its peer knows the silence frames of its codec, or would. */
  readonly silence_frames: boolean
}

/** What must stay the same over the re-offers of a dialog. */
export interface Continuity {
  /** The m= lines so far: later SDP has the same ones in the same order, and maybe more (RFC 3264 §8). */
  readonly lines: readonly { readonly kind: string; readonly protocol: string; readonly formats: readonly string[] }[]
  /** Index of the audio line among them. */
  readonly audio: number
  /** Payload types once bound to an encoding stay bound to it (RFC 3264 §8.3.2); keys as `opus/48000`. */
  readonly payload_types: Readonly<Record<string, number>>
  /** Our last description, whose version the next one raises. */
  readonly local: OwnSdp | null
}

export const NO_CONTINUITY: Continuity = { lines: [], audio: 0, payload_types: {}, local: null }

export interface PayloadUse {
  readonly codec: CodecName
  readonly payload_type: number
}

/** What holds between the two sides until the next offer and answer. */
export interface Settled {
  readonly codec: CodecName
  /** In their numbering. */
  readonly send: PayloadUse
  /** What they may send, in our numbering; the first is the codec. */
  readonly receive: readonly PayloadUse[]
  readonly ptime_ms: number
  readonly maxptime_ms: number | null
  readonly encoder: EncoderSettings
  readonly telephone_event: {
    readonly send: number
    readonly receive: number
    readonly clock_rate_hz: number
  } | null
  /** Payload types of comfort noise: what they take, and in our numbering what they may send. Null: not agreed. */
  readonly comfort_noise: { readonly send: number; readonly receive: number } | null
  /** The codec's own silence frames may be sent both ways. */
  readonly silence_frames: boolean
  /** As seen from us. */
  readonly direction: Direction
  /** The peer put us on hold. */
  readonly hold: boolean
  readonly remote: {
    /** Null: nothing may be sent (0.0.0.0). */
    readonly address: string | null
    readonly rtp_port: number
    readonly rtcp_port: number
    readonly rtcp_mux: boolean
  }
  readonly srtp: { readonly suite: SrtpSuite; readonly send_key: string; readonly receive_key: string } | null
  /** The peer's end of ICE and DTLS, from which address and keys come later. */
  readonly dtls: DtlsLine | null
}

export interface Offer {
  readonly sdp: Sdp
  /** Index of the m= line that is used; all others are refused. */
  readonly audio: number
  /** Codecs in common, in the policy's order. */
  readonly choices: readonly { readonly codec: Codec; readonly payload: Payload }[]
  readonly crypto: CryptoLine | null
  readonly dtls: DtlsLine | null
  /** The peer would tell its pauses by comfort noise, or by silence frames of a codec in common. */
  readonly comfort_noise: boolean
  readonly silence_frames: boolean
  /** Encoding names of all audio lines, as offered. */
  readonly offered: readonly string[]
  /** What the peer asked for, from the peer's side. */
  readonly direction: Direction
  readonly hold: boolean
}

export type OfferRefusal = 'sdp_malformed' | 'no_common_codec' | 'srtp_required'
export type AnswerRefusal = 'sdp_malformed' | 'codec_not_offered' | 'srtp_required'
export interface Refused<R extends string> {
  readonly refused: R
  readonly detail: string
}

/** Whether and how an offer can be answered under a policy. `audio` of an earlier exchange keeps its place. */
export function readOffer(
  sdp: Sdp,
  policy: MediaPolicy,
  continuity: Continuity = NO_CONTINUITY,
): Offer | Refused<OfferRefusal> {
  const offered = sdp.lines.filter(line => line.kind === 'audio').flatMap(line => line.payloads.map(p => p.encoding))
  if (sdp.lines.length < continuity.lines.length)
    return refuse('sdp_malformed', `${sdp.lines.length} m= lines after ${continuity.lines.length} (RFC 3264 §8)`)
  const order = [...sdp.lines.keys()]
  if (continuity.local) order.sort((a, b) => Number(b === continuity.audio) - Number(a === continuity.audio))
  let refusal = refuse<OfferRefusal>('no_common_codec', 'no audio is offered')
  for (const index of order) {
    const line = sdp.lines[index]
    if (line?.kind !== 'audio' || line.port === 0) continue
    const choices = commonCodecs(line, policy)
    const security = lineSecurity(line, policy)
    if (choices.length === 0)
      refusal = refuse('no_common_codec', `offered ${names(line)}, allowed ${policy.codecs.join(' ')}`)
    else if ('refused' in security) refusal = security
    else {
      const direction = askedDirection(line)
      const hold = direction === 'sendonly' || direction === 'inactive'
      const pauses = {
        comfort_noise: noisePayload(line) !== undefined,
        silence_frames: choices.some(({ codec, payload }) => codec.silence_frames?.allowed(payload.fmtp)),
      }
      return { sdp, audio: index, choices, ...security, ...pauses, offered, direction, hold }
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
 * The answer to an offer: one codec, the first of `order` that is offered (see `codecOrder`), else the policy's
 * first. Silence frames are agreed when the other leg has them too, or decodes.
 */
export function answerOffer(
  offer: Offer,
  own: LocalSide,
  continuity: Continuity,
  order: readonly CodecName[],
  other: OtherLeg | null = null,
): Answered | Refused<AnswerRefusal> {
  const line = offer.sdp.lines[offer.audio]
  const wanted = order.find(name => offer.choices.some(({ codec }) => codec.name === name))
  const choice = offer.choices.find(({ codec }) => codec.name === wanted) ?? offer.choices[0]
  if (!line || !choice) throw new Error('an offer that was read has an audio line and a codec')
  const { codec, payload } = choice
  const key = offer.crypto ? own.keys[offer.crypto.suite] : null
  if (offer.crypto && key && sameKey(offer.crypto.key, key))
    return refuse('srtp_required', 'the offer holds our own key')
  const event = own.policy.telephone_event ? eventPayload(line, codec.clock_rate_hz) : null
  const noise = codec.comfort_noise ? noisePayload(line) : undefined
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
      ...(noise ? [noiseAttribute(noise.payload_type)] : []),
      ...(event ? eventAttributes(event.payload_type, codec.clock_rate_hz) : []),
      ...(offer.crypto ? [cryptoAttribute(offer.crypto.tag, offer.crypto.suite, key ?? '')] : []),
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
      ? { send: event.payload_type, receive: event.payload_type, clock_rate_hz: codec.clock_rate_hz }
      : null,
    comfort_noise: noise ? { send: noise.payload_type, receive: noise.payload_type } : null,
    silence_frames,
    direction,
    hold: offer.hold,
    remote: remoteOf(line, line.rtcp_mux),
    srtp: offer.crypto && key ? { suite: offer.crypto.suite, send_key: key, receive_key: offer.crypto.key } : null,
    dtls: offer.dtls,
  }
  return { local, settled, continuity: remember(continuity, local, offer.audio, line.payloads) }
}

/**
 * What we would offer: the codecs of `order`, or all of the policy, on the m= lines that the dialog already has. What
 * is secured stays so, in the suite that is in use: a re-offer is no occasion to change keys, let alone to drop them.
 * Comfort noise and silence frames are offered where the other leg has them, and stay where they were agreed.
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
  const audio = codecs.map(codec => ({ codec, payload_type: types.of(codecKey(codec), codec.payload_type) }))
  const silence_frames = other?.silence_frames || current?.silence_frames || false
  const pauses = other?.comfort_noise || current?.comfort_noise
  const noise =
    pauses && codecs.some(codec => codec.comfort_noise)
      ? [{ payload_type: types.of(NOISE_KEY, comfortNoise.payload_type) }]
      : []
  const clocks = own.policy.telephone_event ? [...new Set(codecs.map(codec => codec.clock_rate_hz))] : []
  const events = clocks.map(clock => ({
    clock,
    payload_type: types.of(eventKey(clock), telephoneEvent.payloadType(clock)),
  }))
  const suite = current?.srtp?.suite ?? null
  const secured = suite !== null || own.policy.security === 'sdes_srtp_required'
  const suites = SRTP_SUITES.map((known, index) => ({ tag: index + 1, suite: known.suite }))
  const before = continuity.lines[continuity.audio]?.protocol ?? ''
  const mid = own.browser ? '0' : null
  const ours: OwnLine = {
    kind: 'audio',
    port: own.rtp_port,
    protocol: own.browser ? 'UDP/TLS/RTP/SAVPF' : profile(secured ? 'RTP/SAVP' : 'RTP/AVP', before),
    formats: [...audio, ...noise, ...events].map(({ payload_type }) => String(payload_type)),
    attributes: [
      ...audio.flatMap(({ codec, payload_type }) => codecAttributes(codec, payload_type, silence_frames)),
      ...noise.map(({ payload_type }) => noiseAttribute(payload_type)),
      ...events.flatMap(({ clock, payload_type }) => eventAttributes(payload_type, clock)),
      ...suites
        .filter(offered => secured && (suite === null || offered.suite === suite))
        .map(offered => cryptoAttribute(offered.tag, offered.suite, own.keys[offered.suite])),
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

/** What their answer to `local` settles. A refused audio line (port 0) leaves no call to have. */
export function readAnswer(
  sdp: Sdp,
  local: OwnSdp,
  own: LocalSide,
  continuity: Continuity,
): Settled | Refused<AnswerRefusal> {
  const line = sdp.lines[continuity.audio]
  const ours = local.lines[continuity.audio]
  if (!ours) throw new Error('our own offer has an audio line')
  if (sdp.lines.length !== local.lines.length || line?.kind !== 'audio')
    return refuse('sdp_malformed', `the answer's m= lines are not those of the offer (RFC 3264 §6)`)
  if (line.port === 0) return refuse('codec_not_offered', 'audio was refused with port 0')
  const types = continuity.payload_types
  const common = line.payloads.flatMap(payload => {
    const ourType = payload.codec ? types[codecKey(payload.codec)] : undefined
    const codec = payload.codec
    return codec && ourType !== undefined && ours.formats.includes(String(ourType)) ? [{ payload, codec, ourType }] : []
  })
  const [first] = common
  if (!first) return refuse('codec_not_offered', `answered ${names(line)}`)
  const security = answeredSecurity(line, ours, own)
  if ('refused' in security) return security
  const direction = both(reverse(askedDirection(line)), own.direction)
  const clock = first.codec.clock_rate_hz
  const event = eventPayload(line, clock)
  const ourEvent = types[eventKey(clock)]
  const noise = first.codec.comfort_noise ? noisePayload(line) : undefined
  const ourNoise = types[NOISE_KEY]
  const frames = first.codec.silence_frames
  const silence_frames =
    frames !== undefined &&
    ours.attributes.includes(`fmtp:${first.ourType} ${frames.fmtp}`) &&
    frames.allowed(first.payload.fmtp)
  return {
    codec: first.codec.name,
    send: { codec: first.codec.name, payload_type: first.payload.payload_type },
    receive: common.map(({ codec, ourType }) => ({ codec: codec.name, payload_type: ourType })),
    ...packing(line),
    encoder: encoderOf(first.codec, first.payload, silence_frames),
    telephone_event:
      event && ourEvent !== undefined && ours.formats.includes(String(ourEvent))
        ? { send: event.payload_type, receive: ourEvent, clock_rate_hz: clock }
        : null,
    comfort_noise:
      noise && ourNoise !== undefined && ours.formats.includes(String(ourNoise))
        ? { send: noise.payload_type, receive: ourNoise }
        : null,
    silence_frames,
    direction,
    hold: askedDirection(line) === 'sendonly' || askedDirection(line) === 'inactive',
    remote: remoteOf(line, security.dtls !== null),
    srtp: security.srtp,
    dtls: security.dtls,
  }
}

/**
 * In which order a leg's codecs are wanted: those that the other leg has, so that the bridge is a relay; then those
 * that can be decoded here. What can be neither relayed nor decoded would be silence and is left out. `related`: the
 * other leg's settled codec, or what its pending offer allows; for a leg that talks to us, its own codec.
 */
export function codecOrder(
  policy: MediaPolicy,
  related: readonly CodecName[],
  decodable: readonly CodecName[],
): CodecName[] {
  const relay = policy.codecs.filter(codec => related.includes(codec))
  return [...relay, ...policy.codecs.filter(codec => decodable.includes(codec) && !relay.includes(codec))]
}

/** How two settled legs are joined: bytes pass unchanged when the codec is one and the packets fit both. */
export function bridgeMode(a: Settled, b: Settled): 'relay' | 'transcode' {
  return a.codec === b.codec ? 'relay' : 'transcode'
}

const refuse = <R extends string>(refused: R, detail: string): Refused<R> => ({ refused, detail })
const names = (line: MediaLine) => line.payloads.map(payload => payload.encoding).join(' ') || 'nothing known'
const codecKey = (codec: Codec) => `${codec.encoding.toLowerCase()}/${codec.clock_rate_hz}`
const eventKey = (clock: number) => `${telephoneEvent.encoding}/${clock}`
const NOISE_KEY = `${comfortNoise.encoding.toLowerCase()}/${comfortNoise.clock_rate_hz}`

function commonCodecs(line: MediaLine, policy: MediaPolicy): Offer['choices'] {
  return policy.codecs.flatMap(name => {
    const payload = line.payloads.find(candidate => candidate.codec?.name === name)
    return payload?.codec ? [{ codec: payload.codec, payload }] : []
  })
}

type Secured = { readonly crypto: CryptoLine | null; readonly dtls: DtlsLine | null }

function lineSecurity(line: MediaLine, policy: MediaPolicy): Secured | Refused<OfferRefusal> {
  if (policy.security === 'dtls_srtp') {
    const detail = refuseBrowser(line, ['actpass', 'active'])
    return detail === null ? { crypto: null, dtls: line.dtls } : refuse('srtp_required', detail)
  }
  const required = policy.security === 'sdes_srtp_required'
  if (/^RTP\/SAVPF?$/.test(line.protocol)) {
    const [crypto] = line.cryptos
    if (crypto) return { crypto, dtls: null }
    return refuse(required ? 'srtp_required' : 'no_common_codec', `${line.protocol} without a crypto line we can serve`)
  }
  if (!/^RTP\/AVPF?$/.test(line.protocol)) return refuse('no_common_codec', `${line.protocol} is not served here`)
  return required
    ? refuse('srtp_required', `${line.protocol} is offered, this trunk requires RTP/SAVP`)
    : { crypto: null, dtls: null }
}

/** Their choice among our crypto lines is told by the tag (RFC 4568 §5.1.3). */
function answeredSecurity(
  line: MediaLine,
  ours: OwnLine,
  own: LocalSide,
): Pick<Settled, 'srtp' | 'dtls'> | Refused<AnswerRefusal> {
  if (own.browser) {
    const detail = refuseBrowser(line, ['active'])
    return detail === null ? { srtp: null, dtls: line.dtls } : refuse('srtp_required', detail)
  }
  if (!ours.protocol.startsWith('RTP/SAVP')) {
    return line.protocol.startsWith('RTP/AVP')
      ? { srtp: null, dtls: null }
      : refuse('sdp_malformed', `${line.protocol} answers an offer of ${ours.protocol}`)
  }
  const [crypto] = line.cryptos
  if (!line.protocol.startsWith('RTP/SAVP') || !crypto)
    return refuse('srtp_required', 'the answer has no crypto line we can serve')
  const offered = SRTP_SUITES[crypto.tag - 1]
  if (offered?.suite !== crypto.suite)
    return refuse('srtp_required', `crypto tag ${crypto.tag} was not offered as ${crypto.suite}`)
  const send_key = own.keys[crypto.suite]
  if (sameKey(send_key, crypto.key)) return refuse('srtp_required', 'the answer holds our own key')
  return { srtp: { suite: crypto.suite, send_key, receive_key: crypto.key }, dtls: null }
}

/**
 * What the peer asks for; 0.0.0.0 is the hold of RFC 2543 and means that nothing may be sent to it. A browser writes
 * 0.0.0.0 too, for it does not know its address yet.
 */
function askedDirection(line: MediaLine): Direction {
  if (!line.held_by_address || line.dtls) return line.direction
  return line.direction === 'sendrecv' || line.direction === 'sendonly' ? 'sendonly' : 'inactive'
}

const sends = (direction: Direction) => direction === 'sendrecv' || direction === 'sendonly'
const receives = (direction: Direction) => direction === 'sendrecv' || direction === 'recvonly'
const directionOf = (send: boolean, receive: boolean): Direction =>
  send ? (receive ? 'sendrecv' : 'sendonly') : receive ? 'recvonly' : 'inactive'
const reverse = (direction: Direction) => directionOf(receives(direction), sends(direction))
const both = (a: Direction, b: Direction) => directionOf(sends(a) && sends(b), receives(a) && receives(b))

function eventPayload(line: MediaLine, clock_rate_hz: number): Payload | undefined {
  return line.payloads.find(
    payload => payload.encoding.toLowerCase() === telephoneEvent.encoding && payload.clock_rate_hz === clock_rate_hz,
  )
}

function noisePayload(line: MediaLine): Payload | undefined {
  const { encoding, clock_rate_hz } = comfortNoise
  return line.payloads.find(
    payload => payload.encoding.toUpperCase() === encoding && payload.clock_rate_hz === clock_rate_hz,
  )
}

function remoteOf(line: MediaLine, rtcp_mux: boolean): Settled['remote'] {
  const rtcp_port = rtcp_mux ? line.port : (line.rtcp_port ?? Math.min(line.port + 1, 65_535))
  return { address: line.address, rtp_port: line.port, rtcp_port, rtcp_mux }
}

function packing(line: MediaLine): Pick<Settled, 'ptime_ms' | 'maxptime_ms'> {
  return { ptime_ms: roundPtime(line.ptime_ms, line.maxptime_ms), maxptime_ms: line.maxptime_ms }
}

/** Packets are of 10 to 60 ms in tens; what lies outside becomes the nearest. */
function roundPtime(wanted_ms: number | null, most_ms: number | null): number {
  const ms = Math.min(wanted_ms ?? 20, most_ms ?? 60, 60)
  return Math.max(10, Math.floor(ms / 10) * 10)
}

/** What the peer asks of our encoder; silence frames that were not agreed are not asked for. */
function encoderOf(codec: Codec, payload: Payload, silence_frames: boolean): EncoderSettings {
  const settings = codec.settings(payload.fmtp)
  return codec.silence_frames && !silence_frames ? { ...settings, dtx: false } : settings
}

function codecAttributes(codec: Codec, payload_type: number, silence_frames: boolean): string[] {
  const channels = codec.channels === null ? '' : `/${codec.channels}`
  const map = `rtpmap:${payload_type} ${codec.encoding}/${codec.clock_rate_hz}${channels}`
  const fmtp = (silence_frames && codec.silence_frames?.fmtp) || codec.fmtp
  return fmtp === null ? [map] : [map, `fmtp:${payload_type} ${fmtp}`]
}

function eventAttributes(payload_type: number, clock_rate_hz: number): string[] {
  return [
    `rtpmap:${payload_type} ${telephoneEvent.encoding}/${clock_rate_hz}`,
    `fmtp:${payload_type} ${telephoneEvent.fmtp}`,
  ]
}

const noiseAttribute = (payload_type: number) =>
  `rtpmap:${payload_type} ${comfortNoise.encoding}/${comfortNoise.clock_rate_hz}`
const cryptoAttribute = (tag: number, suite: SrtpSuite, key: string) => `crypto:${tag} ${suite} inline:${key}`
/** The port after RTP's needs no attribute (RFC 3605 §2.1). */
const rtcpAttributes = (own: LocalSide) => (own.rtcp_port === own.rtp_port + 1 ? [] : [`rtcp:${own.rtcp_port}`])

function refusedLine(line: MediaLine): OwnLine {
  return { kind: line.kind, port: 0, protocol: line.protocol, formats: line.formats, attributes: [] }
}

/** A re-offer keeps the feedback profile that the peer chose (RTP/AVPF, RTP/SAVPF). */
const profile = (plain: string, before: string) => (before === `${plain}F` ? before : plain)

/** The same description keeps its version, a changed one raises it by one (RFC 3264 §8). */
function nextDescription(
  own: LocalSide,
  continuity: Continuity,
  lines: readonly OwnLine[],
  attributes: readonly string[],
): OwnSdp {
  const last = continuity.local
  const { session_id, address } = own
  const next: OwnSdp = { session_id, version: (last?.version ?? 0) + 1, address, attributes, lines }
  return last && JSON.stringify({ ...next, version: last.version }) === JSON.stringify(last) ? last : next
}

function remember(continuity: Continuity, local: OwnSdp, audio: number, payloads: readonly Payload[]): Continuity {
  const payload_types: Record<string, number> = { ...continuity.payload_types }
  for (const payload of payloads) {
    payload_types[`${payload.encoding.toLowerCase()}/${payload.clock_rate_hz}`] ??= payload.payload_type
  }
  const lines = local.lines.map(({ kind, protocol, formats }) => ({ kind, protocol, formats }))
  return { lines, audio, payload_types, local }
}

/** Gives payload types to encodings: the one already bound, else the usual one, else the next free dynamic one. */
class PayloadTypes {
  readonly #bound: Record<string, number>
  constructor(bound: Readonly<Record<string, number>>) {
    this.#bound = { ...bound }
  }
  of(key: string, usual: number): number {
    const known = this.#bound[key]
    if (known !== undefined) return known
    const taken = new Set(Object.values(this.#bound))
    let type = usual
    for (let next = 96; taken.has(type) && next <= 127; next++) type = next
    this.#bound[key] = type
    return type
  }
  all(): Readonly<Record<string, number>> {
    return this.#bound
  }
}
