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

/**
 * Finds the codec of an `a=rtpmap`; without a clock rate (null) by its name alone. No channels and one channel mean the
 * same (RFC 4566 §6 rtpmap).
 */
export function codecByRtpmap(encoding: string, clock_rate_hz: number | null): Codec | null {
  const wanted = encoding.toLowerCase()
  const found = CODECS.find(({ encoding: name, also_named = [] }) =>
    [name, ...also_named].some(known => known.toLowerCase() === wanted),
  )
  return found && (clock_rate_hz ?? found.clock_rate_hz) === found.clock_rate_hz ? found : null
}

/** Finds the codec of a payload type without an rtpmap. */
export function codecByStaticType(payload_type: number): Codec | null {
  return CODECS.find(codec => codec.static_payload_type === payload_type) ?? null
}
