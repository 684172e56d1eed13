import { encoderOf, names, packing, remoteOf, typesOf } from './audio-line.ts'
import { alsoReceived, eventFor, eventsAt, payloadOf } from './beside-audio.ts'
import type { Codec } from './codec.ts'
import { comfortNoise } from './comfort-noise.ts'
import { type Continuity, type Encoding, encodingKey } from './description.ts'
import { askedDirection, both, isHold, reverse } from './direction.ts'
import { refuseSdp, type SdpRefused } from './refusal.ts'
import type { MediaLine, OwnLine, OwnSdp, Payload, Sdp } from './sdp.ts'
import { answeredSecurity } from './security.ts'
import type { LocalSide, PayloadUse, Settled } from './settled.ts'

export type AnswerRefusal = 'sdp_malformed' | 'codec_not_offered' | 'srtp_required' | 'audio_refused'

/**
 * Reads the peer's answer to `local`. One that rejects the audio (port 0) is `audio_refused`; the other refusals are of
 * answers that RFC 3264 §6 does not allow. The answer's m= lines should be those of the offer. When they are not, the
 * first audio line counts that answers ours; the one in our place is tried first.
 */
export function readAnswer(
  sdp: Sdp,
  local: OwnSdp,
  own: LocalSide,
  continuity: Continuity,
): Settled | SdpRefused<AnswerRefusal> {
  const ours = local.lines[continuity.audio]
  if (!ours) throw new Error('our own offer has an audio line')
  const inPlace = sdp.lines[continuity.audio]
  const lines = [inPlace, ...sdp.lines.filter(line => line !== inPlace)].filter(line => line?.kind === 'audio')
  const read = lines.flatMap(line => (line ? [readLine(line, ours, own, continuity)] : []))
  const settled = read.find(outcome => !('refused' in outcome))
  return settled ?? read[0] ?? refuseSdp('sdp_malformed', 'the answer has no audio line (RFC 3264 §6)')
}

function readLine(
  line: MediaLine,
  ours: OwnLine,
  own: LocalSide,
  continuity: Continuity,
): Settled | SdpRefused<AnswerRefusal> {
  if (line.fault !== null) return refuseSdp('sdp_malformed', line.fault)
  if (line.port === 0) return refuseSdp('audio_refused', `${line.where}: audio was refused with port 0`)
  const types = continuity.payload_types
  const offered = (encoding: Encoding): number | undefined => {
    const type = types[encodingKey(encoding)]
    return type !== undefined && ours.formats.includes(String(type)) ? type : undefined
  }
  const common = line.payloads.flatMap(payload => {
    const { codec } = payload
    const ourType = codec ? offered(codec) : undefined
    return codec && ourType !== undefined ? [{ payload, codec, ourType }] : []
  })
  const [first] = common
  if (!first) return refuseSdp('codec_not_offered', `${line.where}: answered ${names(line)}`)
  const security = answeredSecurity(line, ours, own)
  if ('refused' in security) return refuseSdp(security.refused, `${line.where}: ${security.detail}`)
  const asked = askedDirection(line)
  const event = own.policy.telephone_event ? answeredEvent(line, first.codec.clock_rate_hz, offered) : null
  const theirNoise = first.codec.comfort_noise ? payloadOf(line, comfortNoise) : undefined
  const ourNoise = offered(comfortNoise)
  const frames = first.codec.silence_frames
  const silence_frames =
    frames !== undefined &&
    ours.attributes.includes(`fmtp:${first.ourType} ${frames.fmtp}`) &&
    frames.allowed(first.payload.fmtp)
  const receive = [
    ...common.map(({ codec, ourType }) => ({ codec: codec.name, payload_type: ourType })),
    ...theirNumbers(common, ours),
  ]
  return {
    codec: first.codec.name,
    send: { codec: first.codec.name, payload_type: first.payload.payload_type },
    receive,
    ...packing(line),
    encoder: encoderOf(first.codec, first.payload, silence_frames),
    telephone_event: event,
    comfort_noise: theirNoise && ourNoise !== undefined ? { send: theirNoise.payload_type, receive: ourNoise } : null,
    also_receive: alsoReceived(line, own.policy.telephone_event, [
      ...typesOf(receive),
      ...(event ? [event.receive] : []),
      ...(ourNoise === undefined ? [] : [ourNoise]),
    ]),
    silence_frames,
    direction: both(reverse(asked), own.direction),
    hold: isHold(asked),
    remote: remoteOf(line, security.dtls !== null),
    srtp: security.srtp,
    dtls: security.dtls,
  }
}

/** Returns the agreed telephone-event: that of the audio's clock rate, else another that we offered. */
function answeredEvent(
  line: MediaLine,
  clock_rate_hz: number,
  offered: (encoding: Encoding) => number | undefined,
): Settled['telephone_event'] {
  const theirs = eventFor(line, clock_rate_hz)
  if (!theirs) return null
  const receive = offered(theirs) ?? offered(eventsAt(clock_rate_hz))
  return receive === undefined ? null : { send: theirs.payload_type, receive, clock_rate_hz: theirs.clock_rate_hz }
}

/** Returns notes on payload types that an answer numbers differently than our offer. */
export function numberNotes({ receive, telephone_event: event, also_receive }: Settled): string[] {
  const [first] = receive
  const other = receive.find(use => use.codec === first?.codec && use !== first)
  return [
    ...(other && first
      ? [`${first.codec} is answered as ${other.payload_type}, offered as ${first.payload_type}: both are accepted`]
      : []),
    ...(event && also_receive.events.some(({ payload_type }) => payload_type === event.send)
      ? [`telephone-event is answered as ${event.send}, offered as ${event.receive}: both are accepted`]
      : []),
  ]
}

/**
 * Returns the answer's own numbers for our codecs, where they are not numbers of ours: some peers send with their
 * number although ours counts (RFC 3264 §6.1).
 */
const theirNumbers = (
  common: readonly { readonly payload: Payload; readonly codec: Codec }[],
  ours: OwnLine,
): PayloadUse[] =>
  common.flatMap(({ payload: { payload_type }, codec }) =>
    ours.formats.includes(String(payload_type)) ? [] : [{ codec: codec.name, payload_type }],
  )
