import { parseDigits } from '../sip/uri.ts'
import { type Attributes, type Direction, readAttributes } from './attributes.ts'
import { type ConnectionData, type Locate, readConnection } from './connection.ts'
import type { CryptoLine } from './crypto-line.ts'
import { type Payload, readPayloads } from './payloads.ts'
import { lineName, Notes, readSdpText, type SdpLine } from './sdp-text.ts'

export type { Direction, Locate, Payload }

/**
 * The one reader of SDP, generous, and our writer, strict. The reader takes whatever audio can be used of; the rest
 * becomes notes.
 */

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
  /** 0: rejected, disabled (RFC 3264 §6), or of no use to us. */
  readonly port: number
  readonly protocol: string
  /** As written, in order; never empty. */
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
  /** Its line for people: `line 7 (m=audio 4000 RTP/AVP 0)`. */
  readonly where: string
  /** Why the line is of no use, with the line; null when it can be used, or the peer has disabled it. */
  readonly fault: string | null
}

export interface Sdp {
  readonly lines: readonly MediaLine[]
  /** Audio whose address `locate` did not know: the host name of its c= line, or '' without one, and its port. */
  readonly unplaced: readonly { readonly host: string; readonly port: number }[]
  /** What the reader has forgiven, a sentence each, with the line. */
  readonly notes: readonly string[]
}

type SdpReading = { readonly sdp: Sdp } | { readonly refused: 'sdp_malformed'; readonly detail: string }

const MAX_BYTES = 65_536
const MAX_LINES = 64
/** RTP has 128 payload types (RFC 3550 §5.1). */
const MAX_FORMATS = 128

const malformed = (detail: string) => ({ refused: 'sdp_malformed', detail }) as const

/** Reads a description. `locate` gives the address of a host name in c=, or of a peer without a c= line. */
export function readSdp(text: string, locate: Locate = () => null): SdpReading {
  if (text.length > MAX_BYTES) return malformed(`longer than ${MAX_BYTES} characters`)
  const notes = new Notes()
  const { session, media } = readSdpText(text, notes)
  if (media.length === 0) return malformed('has no m= line')
  if (media.length > MAX_LINES) return malformed(`has more than ${MAX_LINES} m= lines`)
  const earlier = session.attributes.length === 0 ? null : readAttributes(session)
  const unplaced: { host: string; port: number }[] = []
  const placing =
    (port: number): Locate =>
    host => {
      const address = locate(host)
      if (address === null) unplaced.push({ host: host ?? '', port })
      return address
    }
  const lines = media.map(section => {
    const { head, connections } = section
    if (!head) throw new Error('every section of media has its m= line')
    const own = readAttributes(section)
    return readLine(earlier, own, readHead(head, own, notes), notes, port =>
      readConnection(connections, session.connections, placing(port), notes),
    )
  })
  return { sdp: { lines, unplaced, notes: notes.texts } }
}

interface Head extends Pick<MediaLine, 'kind' | 'port' | 'protocol' | 'formats' | 'fault'> {
  readonly line: SdpLine
}

const TOKEN = /^[\w!#$%&'*+.^`{|}~-]+$/
const PROTOCOL = /^[\w!#$%&'*+.^`{|}~-]+(?:\/[\w!#$%&'*+.^`{|}~-]+)*$/

/** Protocols as nearly all peers write them. */
const USUAL: ReadonlySet<string> = new Set(['RTP/AVP', 'RTP/SAVP', 'UDP/TLS/RTP/SAVPF'])
const inCapitals = (protocol: string): string =>
  USUAL.has(protocol) ? protocol : protocol.replace(/^(?:udp\/tls\/)?rtp\/.*/i, of => of.toUpperCase())

/** Reads `m=audio 40314/2 RTP/AVP 0 8` (RFC 8866 §5.14). A line that makes no sense is of no use, and gets port 0. */
function readHead(line: SdpLine, { maps }: Attributes, notes: Notes): Head {
  const [kind = '', written = '', protocol = '', ...rest] = line.value.split(' ')
  const [digits = '', count] = written.split('/')
  const port = parseDigits(digits, 65_535) ?? -1
  const audio = kind.toLowerCase() === 'audio'
  const commas = audio && rest.some(format => format.includes(','))
  let formats = commas ? rest.flatMap(format => format.split(',')).filter(format => format !== '') : rest
  if (audio && formats.length === 0) {
    formats = [...new Set(maps.map(map => map.payload_type))]
    if (formats.length > 0) notes.add(line, 'names no format; those of its a=rtpmap lines count')
  }
  if (count !== undefined) notes.add(line, 'counts several ports; the first is used')
  if (formats.length > MAX_FORMATS) notes.add(line, `only its first ${MAX_FORMATS} formats are read`)
  const is_kind = TOKEN.test(kind)
  const is_protocol = USUAL.has(protocol) || PROTOCOL.test(protocol)
  const fault =
    port < 0
      ? `"${written}" is not a port`
      : !is_kind || !is_protocol
        ? 'media or protocol cannot be read'
        : formats.length === 0
          ? 'names no format'
          : null
  if (fault !== null && !audio) notes.add(line, fault)
  return {
    line,
    kind: is_kind ? kind.toLowerCase() : 'application',
    port: fault === null ? port : 0,
    protocol: is_protocol ? inCapitals(protocol) : 'RTP/AVP',
    formats: formats.length === 0 ? ['0'] : formats.slice(0, MAX_FORMATS),
    fault: fault === null ? null : `${lineName(line)}: ${fault}`,
  }
}

function readLine(
  session: Attributes | null,
  own: Attributes,
  head: Head,
  notes: Notes,
  connect: (port: number) => ConnectionData,
): MediaLine {
  const { line, kind, port, protocol, formats } = head
  const said = withEarlier(session, own, line, notes)
  const audio = kind === 'audio'
  const used = audio && port !== 0
  const { address, family, held, fault }: ConnectionData = used
    ? connect(port)
    : { address: null, family: 'ipv4', held: false, fault: null }
  const { rtcp_port } = said
  return {
    kind,
    port: fault === null ? port : 0,
    protocol,
    formats,
    payloads: audio ? readPayloads(said, formats, line, notes) : [],
    address,
    family,
    held_by_address: held,
    direction: said.direction ?? 'sendrecv',
    ptime_ms: said.ptime_ms,
    maxptime_ms: said.maxptime_ms,
    rtcp_port: rtcp_port !== null && rtcp_port > 0 && rtcp_port <= 65_535 ? rtcp_port : null,
    rtcp_mux: said.rtcp_mux,
    cryptos: said.cryptos ?? [],
    dtls: readDtls(said),
    mid: said.mid,
    where: lineName(line),
    fault: head.fault ?? fault,
  }
}

/** Attributes that belong under an m= line, but stand before the first, count for every m= line that lacks them. */
function withEarlier(session: Attributes | null, own: Attributes, line: SdpLine, notes: Notes): Attributes {
  if (session === null) return own
  if (session.maps.length > 0 || session.cryptos !== null || session.rtcp_port !== null)
    notes.add(line, 'its attributes stand before it')
  const unmapped = session.maps.filter(({ payload_type }) => own.maps.every(map => map.payload_type !== payload_type))
  return {
    maps: [...own.maps, ...unmapped],
    formats: [...own.formats, ...session.formats],
    direction: own.direction ?? session.direction,
    ptime_ms: own.ptime_ms ?? session.ptime_ms,
    maxptime_ms: own.maxptime_ms ?? session.maxptime_ms,
    rtcp_port: own.rtcp_port ?? session.rtcp_port,
    rtcp_mux: own.rtcp_mux || session.rtcp_mux,
    cryptos: own.cryptos ?? session.cryptos,
    fingerprint: own.fingerprint ?? session.fingerprint,
    ice_ufrag: own.ice_ufrag ?? session.ice_ufrag,
    ice_pwd: own.ice_pwd ?? session.ice_pwd,
    setup: own.setup ?? session.setup,
    mid: own.mid ?? session.mid,
  }
}

function readDtls({ fingerprint, ice_ufrag, ice_pwd, setup }: Attributes): DtlsLine | null {
  if (fingerprint === null || ice_ufrag === null || ice_pwd === null) return null
  const { algorithm, hash } = fingerprint
  return { algorithm, fingerprint: hash, setup: setup ?? 'actpass', ice_ufrag, ice_pwd }
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
