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
  const found = BY_ENCODING.get(encoding.toLowerCase())
  return found && (clock_rate_hz ?? found.clock_rate_hz) === found.clock_rate_hz ? found : null
}

const BY_ENCODING: ReadonlyMap<string, Codec> = new Map(
  CODECS.flatMap(codec =>
    [codec.encoding, ...(codec.also_named ?? [])].map((name): [string, Codec] => [name.toLowerCase(), codec]),
  ),
)
