import ipaddr from 'ipaddr.js'
import sdpTransform from 'sdp-transform'
import type { Codec } from './codec.ts'
import { comfortNoise } from './comfort-noise.ts'
import { type CryptoLine, readCryptoLine } from './crypto-line.ts'
import { codecByRtpmap, codecByStaticType } from './registry.ts'

/** The parts of a stranger's SDP that we use. sdp-transform accepts anything, so this module validates. */

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'

export interface Payload {
  readonly payload_type: number
  readonly encoding: string
  readonly clock_rate_hz: number
  readonly channels: number | null
  readonly fmtp: string | null
  /** Null for an unknown codec. */
  readonly codec: Codec | null
}

/**
 * A browser's DTLS fingerprint (RFC 8122), role (RFC 4145) and ICE credentials (RFC 8839).
 */
export interface DtlsLine {
  /** Hash name in lower case. */
  readonly algorithm: string
  /** Upper-case hex with colons. */
  readonly fingerprint: string
  readonly setup: string
  readonly ice_ufrag: string
  readonly ice_pwd: string
}

export interface MediaLine {
  readonly kind: string
  /** 0: rejected or disabled (RFC 3264 §6). */
  readonly port: number
  readonly protocol: string
  /** As written, in order. */
  readonly formats: readonly string[]
  readonly payloads: readonly Payload[]
  /** Null for an address that cannot be sent to, such as 0.0.0.0, the hold of RFC 2543. */
  readonly address: string | null
  /** Family of the address, also of 0.0.0.0 or ::. */
  readonly family: 'ipv4' | 'ipv6'
  /** Whether the address was 0.0.0.0 or ::. */
  readonly held_by_address: boolean
  readonly direction: Direction
  readonly ptime_ms: number | null
  readonly maxptime_ms: number | null
  readonly rtcp_port: number | null
  readonly rtcp_mux: boolean
  readonly cryptos: readonly CryptoLine[]
  readonly dtls: DtlsLine | null
  readonly mid: string | null
}

export interface Sdp {
  readonly session_id: string
  readonly version: string
  readonly lines: readonly MediaLine[]
}

type SdpReading = { readonly sdp: Sdp } | { readonly refused: 'sdp_malformed'; readonly detail: string }

const MAX_BYTES = 65_536
const MAX_LINES = 16
const MAX_FORMATS = 64
const DIRECTIONS: readonly string[] = ['sendrecv', 'sendonly', 'recvonly', 'inactive']

type RawSession = ReturnType<typeof sdpTransform.parse>
type RawLine = RawSession['media'][number]
const malformed = (detail: string) => ({ refused: 'sdp_malformed', detail }) as const

export function readSdp(text: string): SdpReading {
  if (text.length > MAX_BYTES) return malformed(`longer than ${MAX_BYTES} characters`)
  if (!/^v=0[ \t]*(\r\n|\r|\n)/.test(text)) return malformed('does not begin with v=0')
  const wrong = text.split(/\r\n|\r|\n/).find(line => line.trim() !== '' && !/^[a-z]=/.test(line))
  if (wrong !== undefined) return malformed(`"${wrong.slice(0, 40)}" is not a line of SDP`)
  const raw = sdpTransform.parse(text)
  if (raw.origin?.sessionId === undefined) return malformed('has no o= line that can be read')
  if (raw.media.length === 0) return malformed('has no m= line')
  if (raw.media.length > MAX_LINES) return malformed(`has more than ${MAX_LINES} m= lines`)
  const lines: MediaLine[] = []
  for (const line of raw.media) {
    const reading = readLine(raw, line)
    if ('refused' in reading) return reading
    lines.push(reading)
  }
  return { sdp: { session_id: String(raw.origin.sessionId), version: String(raw.origin.sessionVersion), lines } }
}

function readLine(session: RawSession, raw: RawLine): MediaLine | ReturnType<typeof malformed> {
  if (raw.type === undefined) return malformed('an m= line cannot be read')
  const port = Number(raw.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return malformed(`${raw.port} is not a port`)
  const formats = String(raw.payloads ?? '')
    .split(/\s+/)
    .filter(format => format !== '')
  if (formats.length === 0) return malformed(`the m=${raw.type} line names no format`)
  if (formats.length > MAX_FORMATS) return malformed(`the m=${raw.type} line names more than ${MAX_FORMATS} formats`)
  const written = raw.connection?.ip ?? session.connection?.ip
  if (written === undefined && port !== 0) return malformed(`no c= line for m=${raw.type}`)
  const address = readAddress(String(written ?? '0.0.0.0'))
  if (address === null) return malformed(`"${String(written).slice(0, 60)}" in c= is not an address`)
  const held_by_address = address === '0.0.0.0' || address === '::'
  const direction = String(raw.direction ?? session.direction ?? 'sendrecv')
  const rtcp_port = Number(raw.rtcp?.port)
  return {
    kind: raw.type,
    port,
    protocol: String(raw.protocol),
    formats,
    payloads: raw.type === 'audio' ? readPayloads(raw, formats) : [],
    address: held_by_address ? null : address,
    family: address.includes(':') ? 'ipv6' : 'ipv4',
    held_by_address,
    direction: (DIRECTIONS.includes(direction) ? direction : 'sendrecv') as Direction,
    ptime_ms: milliseconds(raw.ptime ?? session.ptime),
    maxptime_ms: milliseconds(raw.maxptime),
    rtcp_port: Number.isInteger(rtcp_port) && rtcp_port > 0 && rtcp_port <= 65_535 ? rtcp_port : null,
    rtcp_mux: raw.rtcpMux !== undefined,
    cryptos: (raw.crypto ?? []).flatMap(line => {
      const read = readCryptoLine(
        String(line.id ?? ''),
        String(line.suite ?? ''),
        String(line.config ?? ''),
        String(line.sessionConfig ?? ''),
      )
      return read ? [read] : []
    }),
    dtls: readDtls(session, raw),
    mid: raw.mid === undefined ? null : String(raw.mid),
  }
}

/** Reads the DTLS attributes. Those at session level apply to all lines. */
function readDtls(session: RawSession, raw: RawLine): DtlsLine | null {
  const fingerprint = raw.fingerprint ?? session.fingerprint
  const ice_ufrag = raw.iceUfrag ?? session.iceUfrag
  const ice_pwd = raw.icePwd ?? session.icePwd
  if (!fingerprint || ice_ufrag === undefined || ice_pwd === undefined) return null
  return {
    algorithm: String(fingerprint.type ?? '').toLowerCase(),
    fingerprint: String(fingerprint.hash ?? '').toUpperCase(),
    setup: String(raw.setup ?? session.setup ?? 'actpass'),
    ice_ufrag: String(ice_ufrag),
    ice_pwd: String(ice_pwd),
  }
}

/** Drops payload types outside 0-127, duplicates, and those with an absurd clock rate. */
function readPayloads(raw: RawLine, formats: readonly string[]): Payload[] {
  const payloads: Payload[] = []
  const seen = new Set<number>()
  for (const format of formats) {
    const payload_type = /^\d{1,3}$/.test(format) ? Number(format) : Number.NaN
    if (!(payload_type <= 127) || seen.has(payload_type)) continue
    seen.add(payload_type)
    const map = raw.rtp.find(entry => entry.payload === payload_type)
    const fmtp = raw.fmtp.find(entry => entry.payload === payload_type)
    const fallback = map ? null : codecByStaticType(payload_type)
    const known = payload_type === comfortNoise.payload_type ? comfortNoise : fallback
    if (!map && !known) continue
    const encoding = map ? String(map.codec ?? '') : (known?.encoding ?? '')
    const clock_rate_hz = map ? Number(map.rate ?? 8000) : (known?.clock_rate_hz ?? 0)
    const channels = map ? (map.encoding === undefined ? null : Number(map.encoding)) : (known?.channels ?? null)
    if (encoding === '' || !Number.isInteger(clock_rate_hz) || clock_rate_hz < 1000 || clock_rate_hz > 384_000) continue
    payloads.push({
      payload_type,
      encoding,
      clock_rate_hz,
      channels,
      fmtp: fmtp?.config === undefined ? null : String(fmtp.config).trim(),
      codec: fallback ?? codecByRtpmap(encoding, clock_rate_hz),
    })
  }
  return payloads
}

/**
 * Returns an address literal in its shortest form, without a multicast TTL; null for host names, which we do not
 * resolve.
 */
function readAddress(text: string): string | null {
  const [literal = ''] = text.split('/')
  if (ipaddr.IPv4.isValidFourPartDecimal(literal)) return literal
  return ipaddr.IPv6.isValid(literal) ? ipaddr.IPv6.parse(literal).toString() : null
}

function milliseconds(value: string | number | undefined): number | null {
  const number = Number(value)
  return Number.isFinite(number) && number >= 1 && number <= 1000 ? Math.round(number) : null
}

/** One m= section of ours. */
export interface OwnLine {
  readonly kind: string
  readonly port: number
  readonly protocol: string
  readonly formats: readonly string[]
  /** Attributes in order, without `a=`; none for a rejected line. */
  readonly attributes: readonly string[]
}

export interface OwnSdp {
  readonly session_id: string
  readonly version: number
  readonly address: string
  /** Attributes above the media lines, without `a=`. */
  readonly attributes: readonly string[]
  readonly lines: readonly OwnLine[]
}

/** Writes our SDP without a library: a dozen lines, whose order matters to some peers. */
export function writeSdp(sdp: OwnSdp): string {
  const family = sdp.address.includes(':') ? 'IP6' : 'IP4'
  const text = [
    'v=0',
    `o=strowger ${sdp.session_id} ${sdp.version} IN ${family} ${sdp.address}`,
    's=-',
    `c=IN ${family} ${sdp.address}`,
    't=0 0',
    ...sdp.attributes.map(attribute => `a=${attribute}`),
  ]
  for (const line of sdp.lines) {
    text.push(`m=${line.kind} ${line.port} ${line.protocol} ${line.formats.join(' ')}`)
    for (const attribute of line.attributes) text.push(`a=${attribute}`)
  }
  return `${text.join('\r\n')}\r\n`
}
