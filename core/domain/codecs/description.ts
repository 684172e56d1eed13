import type { MediaLine, OwnLine, OwnSdp, Payload } from './sdp.ts'

/** Our SDP, and the parts that later SDP of the same dialog must keep (RFC 3264 §8). */

/** State that stays the same over the re-offers of a dialog. */
export interface Continuity {
  /** The m= lines so far. Later SDP has the same ones in the same order, and may add more (RFC 3264 §8). */
  readonly lines: readonly { readonly kind: string; readonly protocol: string; readonly formats: readonly string[] }[]
  /** Index of the audio line among them. */
  readonly audio: number
  /** Payload types once bound to an encoding stay bound to it (RFC 3264 §8.3.2); keys as `opus/48000`. */
  readonly payload_types: Readonly<Record<string, number>>
  /** Our last description. The next one increases its version. */
  readonly local: OwnSdp | null
}

export const NO_CONTINUITY: Continuity = { lines: [], audio: 0, payload_types: {}, local: null }

/** The encoding of packets, as in `a=rtpmap`. */
export interface Encoding {
  readonly encoding: string
  readonly clock_rate_hz: number
  readonly channels?: number | null
}

/** Returns a key for comparison. Names are case-insensitive (RFC 4855 §3). */
export const encodingKey = ({ encoding, clock_rate_hz }: Encoding): string =>
  `${encoding.toLowerCase()}/${clock_rate_hz}`

export function payloadAttributes(payload_type: number, of: Encoding, fmtp: string | null): string[] {
  const channels = of.channels == null ? '' : `/${of.channels}`
  const map = `rtpmap:${payload_type} ${of.encoding}/${of.clock_rate_hz}${channels}`
  return fmtp === null ? [map] : [map, `fmtp:${payload_type} ${fmtp}`]
}

/** Returns the `rtcp` attribute, which the port after RTP's does not need (RFC 3605 §2.1). */
export const rtcpAttributes = (own: { readonly rtp_port: number; readonly rtcp_port: number }): string[] =>
  own.rtcp_port === own.rtp_port + 1 ? [] : [`rtcp:${own.rtcp_port}`]

export function refusedLine(line: MediaLine): OwnLine {
  return { kind: line.kind, port: 0, protocol: line.protocol, formats: line.formats, attributes: [] }
}

/** Returns the profile of a re-offer, which keeps the peer's feedback profile (RTP/AVPF, RTP/SAVPF). */
export const profile = (plain: string, before: string): string => (before === `${plain}F` ? before : plain)

/** Builds the next description. It keeps the version when unchanged, else increases it by one (RFC 3264 §8). */
export function nextDescription(
  { session_id, address }: Pick<OwnSdp, 'session_id' | 'address'>,
  continuity: Continuity,
  lines: readonly OwnLine[],
  attributes: readonly string[],
): OwnSdp {
  const last = continuity.local
  const next: OwnSdp = { session_id, version: (last?.version ?? 0) + 1, address, attributes, lines }
  return last && JSON.stringify({ ...next, version: last.version }) === JSON.stringify(last) ? last : next
}

/**
 * Remembers an exchange. `payloads` have the peer's numbers. The newest count: a peer may give a bound number to
 * another encoding, which RFC 3264 §8.3.2 forbids, and our offers name each number once. Of two in one description, the
 * first counts.
 */
export function remember(
  continuity: Continuity,
  local: OwnSdp,
  audio: number,
  payloads: readonly Payload[],
): Continuity {
  const numbers = new Map([...payloads].reverse().map(payload => [payload.payload_type, encodingKey(payload)]))
  const kept = Object.entries(continuity.payload_types).filter(([, type]) => !numbers.has(type))
  const payload_types = Object.fromEntries([...kept, ...[...numbers].map(([type, key]) => [key, type] as const)])
  const lines = local.lines.map(({ kind, protocol, formats }) => ({ kind, protocol, formats }))
  return { lines, audio, payload_types, local }
}

/** Assigns payload types to encodings: the one already bound, else the usual one, else the next free dynamic one. */
export class PayloadTypes {
  readonly #bound: Record<string, number>
  constructor(bound: Readonly<Record<string, number>>) {
    this.#bound = { ...bound }
  }
  of(encoding: Encoding, usual: number): number {
    const key = encodingKey(encoding)
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
