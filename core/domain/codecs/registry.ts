import type { Codec, CodecName } from './codec.ts'
import { g722 } from './g722.ts'
import { g729 } from './g729.ts'
import { opus } from './opus.ts'
import { pcma } from './pcma.ts'
import { pcmu } from './pcmu.ts'

export const CODECS: readonly Codec[] = [pcma, pcmu, g722, g729, opus]

export function codecByName(name: CodecName): Codec {
  const codec = CODECS.find(candidate => candidate.name === name)
  if (!codec) throw new Error(`no codec is called ${name}`)
  return codec
}

/** Finds the codec of an `a=rtpmap`. No channels and one channel mean the same (RFC 4566 §6 rtpmap). */
export function codecByRtpmap(encoding: string, clock_rate_hz: number): Codec | null {
  const wanted = encoding.toLowerCase()
  return CODECS.find(codec => codec.encoding.toLowerCase() === wanted && codec.clock_rate_hz === clock_rate_hz) ?? null
}

/** Finds the codec of a payload type without an rtpmap. */
export function codecByStaticType(payload_type: number): Codec | null {
  return CODECS.find(codec => codec.static_payload_type === payload_type) ?? null
}
