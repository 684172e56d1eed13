import { comfortNoise } from './comfort-noise.ts'
import { type Encoding, encodingKey, payloadAttributes } from './description.ts'
import type { MediaLine, Payload } from './sdp.ts'
import { telephoneEvent } from './telephone-event.ts'

/** What travels beside the audio of a stream: key events (RFC 4733) and comfort noise (RFC 3389). */

interface EventType {
  readonly payload_type: number
  readonly clock_rate_hz: number
}

/** Payload types that are accepted although they are not what was agreed. */
export interface AlsoReceived {
  readonly events: readonly EventType[]
  readonly comfort_noise: readonly number[]
}

export const eventsAt = (clock_rate_hz: number): Encoding => ({ encoding: telephoneEvent.encoding, clock_rate_hz })

export const eventAttributes = (payload_type: number, clock_rate_hz: number): string[] =>
  payloadAttributes(payload_type, eventsAt(clock_rate_hz), telephoneEvent.fmtp)

export function payloadOf(line: MediaLine, encoding: Encoding): Payload | undefined {
  return line.payloads.find(payload => encodingKey(payload) === encodingKey(encoding))
}

/**
 * Returns the telephone-event of a line for audio of a clock rate: that of the same rate (RFC 4733 §2.1), else that of
 * 8000 Hz, which most peers mean whatever the audio, else the first (decision 0760).
 */
export function eventFor(line: MediaLine, clock_rate_hz: number): Payload | undefined {
  const all = eventsIn(line)
  const at = (clock: number) => all.find(payload => payload.clock_rate_hz === clock)
  return at(clock_rate_hz) ?? at(8000) ?? all[0]
}

const eventsIn = (line: MediaLine): Payload[] =>
  line.payloads.filter(({ encoding }) => encoding.toLowerCase() === telephoneEvent.encoding)

/**
 * Returns what a peer may send beyond what was agreed with it. `taken` are the payload types in use. Peers send the
 * events of any clock rate that they list, and comfort noise of type 13 beside every codec.
 */
export function alsoReceived(line: MediaLine, events: boolean, taken: readonly number[]): AlsoReceived {
  const free = (payload: Payload) => !taken.includes(payload.payload_type)
  const found = new Map(
    (events ? eventsIn(line).filter(free) : []).map(({ payload_type, clock_rate_hz }) => [
      payload_type,
      { payload_type, clock_rate_hz },
    ]),
  )
  const noise = line.payloads
    .filter(({ encoding }) => encoding.toLowerCase() === comfortNoise.encoding.toLowerCase())
    .filter(free)
    .map(({ payload_type }) => payload_type)
  const usual = [...taken, ...found.keys()].includes(comfortNoise.payload_type) ? [] : [comfortNoise.payload_type]
  return { events: [...found.values()], comfort_noise: [...new Set([...noise, ...usual])] }
}
