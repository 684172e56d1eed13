import { parseDigits } from '../sip/uri.ts'
import type { Attributes, PayloadMap } from './attributes.ts'
import type { Codec } from './codec.ts'
import { comfortNoise } from './comfort-noise.ts'
import { CODECS, codecByRtpmap } from './registry.ts'
import type { Notes, SdpLine } from './sdp-text.ts'
import { telephoneEvent } from './telephone-event.ts'

/** The payload types of an m=audio line, with their encodings (RFC 8866 §6.6, RFC 3551 §6). */

export interface Payload {
  readonly payload_type: number
  readonly encoding: string
  readonly clock_rate_hz: number
  readonly channels: number | null
  readonly fmtp: string | null
  /** Null for an unknown codec. */
  readonly codec: Codec | null
}

/** Drops payload types outside 0-127, duplicates, and those with an absurd clock rate. */
export function readPayloads(
  { maps, formats: parameters }: Pick<Attributes, 'maps' | 'formats'>,
  formats: readonly string[],
  line: SdpLine,
  notes: Notes,
): readonly Payload[] {
  const found: Payload[] = []
  const seen = new Set<number>()
  for (const format of formats) {
    const payload_type = parseDigits(format, 127)
    if (payload_type === undefined || format.length > 3 || seen.has(payload_type)) continue
    seen.add(payload_type)
    const name = String(payload_type)
    const fmtp = parameters.find(entry => entry.payload_type === name)?.parameters ?? null
    const own = maps.filter(entry => entry.payload_type === name)
    const note = (text: string): void => notes.add(line, `payload type ${payload_type}: ${text}`)
    for (const { encoding, clock_rate_hz, channels, codec } of ofType(payload_type, own, fmtp, note))
      found.push({ payload_type, encoding, clock_rate_hz, channels, fmtp, codec })
  }
  return found
}

type Encoded = Omit<Payload, 'payload_type' | 'fmtp'>

function ofType(
  payload_type: number,
  maps: readonly PayloadMap[],
  fmtp: string | null,
  note: (text: string) => void,
): readonly Encoded[] {
  const mapped: Encoded[] = []
  for (const map of maps) {
    const one = mappedTo(map)
    if (one) mapped.push(one)
  }
  if (mapped.length < maps.length) note('an a=rtpmap cannot be read')
  // No a=rtpmap changes a static payload type that we know.
  const fixed = FIXED.get(payload_type)
  if (fixed) {
    const other = mapped.find(map => !isSame(map, fixed))
    if (other) note(`is ${fixed.encoding} by RFC 3551, not ${other.encoding}/${other.clock_rate_hz}`)
    return [fixed]
  }
  const [first] = mapped
  if (!first) {
    // Some peers list telephone-event and give its keys, but forget its a=rtpmap.
    if (maps.length > 0 || fmtp === null || !EVENTS_FMTP.test(fmtp)) return []
    note('is taken for telephone-event, by its a=fmtp')
    return [{ encoding: telephoneEvent.encoding, clock_rate_hz: 8000, channels: null, codec: null }]
  }
  if (!named(first.encoding, telephoneEvent.encoding)) {
    if (mapped.length > 1) note('is mapped more than once; the first counts')
    return [first]
  }
  // The clock rate of the chosen audio decides which of these counts (RFC 4733 §2.1).
  const events = mapped.filter(({ encoding }) => named(encoding, telephoneEvent.encoding))
  if (events.length > 1) note('is telephone-event at several clock rates')
  return events
}

const EVENTS_FMTP = /^(?:events=)?\d{1,3}(?:-\d{1,3})?(?:[,;] ?\d{1,3}(?:-\d{1,3})?)*$/i
const named = (encoding: string, name: string): boolean => encoding.toLowerCase() === name.toLowerCase()

const isSame = (map: Encoded, fixed: Encoded): boolean =>
  map.codec
    ? map.codec === fixed.codec
    : named(map.encoding, fixed.encoding) && map.clock_rate_hz === fixed.clock_rate_hz

/** The static payload types that we know (RFC 3551 §6). */
const FIXED: ReadonlyMap<number, Encoded> = new Map([
  [comfortNoise.payload_type, encoded(comfortNoise, null)],
  ...CODECS.flatMap(codec =>
    codec.static_payload_type === null ? [] : [[codec.static_payload_type, encoded(codec, codec)] as const],
  ),
])

function encoded(
  { encoding, clock_rate_hz, channels }: Pick<Encoded, 'encoding' | 'clock_rate_hz' | 'channels'>,
  codec: Codec | null,
): Encoded {
  return { encoding, clock_rate_hz, channels, codec }
}

function mappedTo({ encoding, clock_rate_hz: written, channels }: PayloadMap): Encoded | null {
  const codec = codecByRtpmap(encoding, written)
  const clock_rate_hz = written ?? codec?.clock_rate_hz ?? 8000
  if (encoding === '' || !Number.isInteger(clock_rate_hz) || clock_rate_hz < 1000 || clock_rate_hz > 384_000)
    return null
  return { encoding: codec?.encoding ?? encoding, clock_rate_hz, channels, codec }
}
