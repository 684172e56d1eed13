import { type CryptoLine, readCryptoLine } from './crypto-line.ts'
import type { Section } from './sdp-text.ts'

/** The attributes of an SDP that we need (RFC 8866 §6). The others cost one look at their name. */

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'

/** `a=rtpmap:101 telephone-event/8000`. */
export interface PayloadMap {
  /** As written. */
  readonly payload_type: string
  readonly encoding: string
  /** Null when it is not given; 0 when it is empty. */
  readonly clock_rate_hz: number | null
  readonly channels: number | null
}

/** What one level says; null for what it does not say. The last of equal attributes counts. */
export interface Attributes {
  readonly maps: readonly PayloadMap[]
  readonly formats: readonly { readonly payload_type: string; readonly parameters: string }[]
  readonly direction: Direction | null
  readonly ptime_ms: number | null
  readonly maxptime_ms: number | null
  readonly rtcp_port: number | null
  readonly rtcp_mux: boolean
  /** Null without a line; a line that we do not support is left out. */
  readonly cryptos: readonly CryptoLine[] | null
  readonly fingerprint: { readonly algorithm: string; readonly hash: string } | null
  readonly ice_ufrag: string | null
  readonly ice_pwd: string | null
  readonly setup: string | null
  readonly mid: string | null
}

type Writable = { -readonly [Name in keyof Attributes]: Attributes[Name] } & {
  maps: PayloadMap[]
  formats: { payload_type: string; parameters: string }[]
  cryptos: CryptoLine[] | null
}

/** Reads the attributes of one level. A line that cannot be read counts as none. */
export function readAttributes({ attributes }: Section): Attributes {
  const found: Writable = {
    maps: [],
    formats: [],
    direction: null,
    ptime_ms: null,
    maxptime_ms: null,
    rtcp_port: null,
    rtcp_mux: false,
    cryptos: null,
    fingerprint: null,
    ice_ufrag: null,
    ice_pwd: null,
    setup: null,
    mid: null,
  }
  for (const attribute of attributes) {
    const colon = attribute.indexOf(':')
    if (colon < 0) readFlag(found, attribute)
    else readValue(found, attribute.slice(0, colon), attribute.slice(colon + 1))
  }
  return found
}

function readFlag(found: Writable, name: string): void {
  switch (name) {
    case 'sendrecv':
    case 'sendonly':
    case 'recvonly':
    case 'inactive':
      found.direction = name
      break
    case 'rtcp-mux':
      found.rtcp_mux = true
  }
}

const MAP = /^(\d*) ([\w\-.]*)(?:\s*\/(\d*)(?:\s*\/(\S*))?)?/
const FORMAT = /^(\d*) ([\S ]*)/
const CRYPTO = /^(\d*) (\w*) (\S*)(?: (\S*))?/

function readValue(found: Writable, name: string, value: string): void {
  switch (name) {
    case 'rtpmap': {
      const [line, payload_type = '', encoding = '', rate, channels] = MAP.exec(value) ?? []
      if (line !== undefined)
        found.maps.push({ payload_type, encoding, clock_rate_hz: numberOf(rate), channels: numberOf(channels) })
      break
    }
    case 'fmtp': {
      const [line, payload_type = '', parameters = ''] = FORMAT.exec(value) ?? []
      if (line !== undefined) found.formats.push({ payload_type, parameters: parameters.trim() })
      break
    }
    case 'crypto': {
      const [line, tag = '', suite = '', keys = '', parameters = ''] = CRYPTO.exec(value) ?? []
      if (line === undefined) break
      found.cryptos ??= []
      const crypto = readCryptoLine(tag, suite, keys, parameters)
      if (crypto) found.cryptos.push(crypto)
      break
    }
    case 'fingerprint': {
      const [algorithm = '', hash] = value.split(' ')
      if (hash !== undefined) found.fingerprint = { algorithm: algorithm.toLowerCase(), hash: hash.toUpperCase() }
      break
    }
    case 'ptime':
      found.ptime_ms = milliseconds(value)
      break
    case 'maxptime':
      found.maxptime_ms = milliseconds(value)
      break
    case 'rtcp':
      found.rtcp_port = Number(/^\d*/.exec(value)?.[0])
      break
    case 'setup':
      found.setup = /^\w*/.exec(value)?.[0] ?? ''
      break
    case 'ice-ufrag':
      found.ice_ufrag = word(value)
      break
    case 'ice-pwd':
      found.ice_pwd = word(value)
      break
    case 'mid':
      found.mid = word(value)
      break
    default:
      readFlag(found, name)
  }
}

const numberOf = (text: string | undefined): number | null => (text === undefined ? null : Number(text))
const word = (value: string): string => /^\S*/.exec(value)?.[0] ?? ''

/** Reads a packet time of 1 to 1000 ms; null for any other. */
function milliseconds(value: string): number | null {
  const number = Number(/^[\d.]*/.exec(value)?.[0])
  return Number.isFinite(number) && number >= 1 && number <= 1000 ? Math.round(number) : null
}
