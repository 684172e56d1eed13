import ipaddr from 'ipaddr.js'

type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string }

const no = (why: string): { readonly ok: false; readonly why: string } => ({ ok: false, why })

const MAX_URI_CHARACTERS = 255
const USER = /^[A-Za-z0-9\-_.!~*'()&=+$,;?/%]{1,128}$/
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\.?$/i
const PARAMETER = /^;([a-z0-9\-_.!%*+]{1,40})(?:=([A-Za-z0-9\-_.!%*+[\]:]{1,80}))?/i

/**
 * Validates a SIP URI to which a trunk sends calls (RFC 3261 §19.1): `sip:` or `sips:`, host, optional user, port and
 * parameters. It refuses passwords, header fields and characters that could end a header line.
 */
export function readSipUri(text: string, transport: 'udp' | 'tcp' | 'tls'): Read<string> {
  if (text.length > MAX_URI_CHARACTERS) return no(`is longer than ${MAX_URI_CHARACTERS} characters`)
  if (/[\u0000-\u0020\u007f-\uffff<>"]/.test(text)) return no('has a character that a SIP URI cannot have')
  const match = /^(sips?):(?:([^@]*)@)?(\[[0-9a-f:.]+\]|[^:;?@[\]]+)(?::(\d{1,5}))?((?:;[^?]*)?)(\?.*)?$/i.exec(text)
  if (!match) return no('is not a sip: or sips: URI')
  const [, scheme = '', user, host = '', port, parameters = '', headers] = match
  if (headers !== undefined) return no('must not have header fields')
  if (user?.includes(':')) return no('must not have a password')
  if (user !== undefined && !USER.test(user)) return no('has a user that a SIP URI cannot have')
  if (user !== undefined && /%(0[0-9a-f]|1[0-9a-f]|7f)/i.test(user)) return no('has an escaped control character')
  if (!isHost(host)) return no('has no valid host')
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) return no('has a port outside 1 to 65535')
  if (scheme.toLowerCase() === 'sips' && transport !== 'tls') return no('is a sips: URI and needs transport tls')
  return parametersOf(parameters, transport) ?? { ok: true, value: text }
}

function isHost(host: string): boolean {
  if (host.startsWith('[')) return ipaddr.IPv6.isValid(host.slice(1, -1))
  if (/^[\d.]+$/.test(host)) return ipaddr.IPv4.isValidFourPartDecimal(host)
  return HOST_NAME.test(host)
}

function parametersOf(text: string, transport: string): Read<never> | null {
  let rest = text
  while (rest !== '') {
    const match = PARAMETER.exec(rest)
    if (!match) return no('has a parameter that a SIP URI cannot have')
    const [whole, name = '', value = ''] = match
    if (name.toLowerCase() === 'transport' && value.toLowerCase() !== transport)
      return no(`names transport ${value.slice(0, 20)} and the target has ${transport}`)
    rest = rest.slice(whole.length)
  }
  return null
}

/** An address range in canonical form. `private` means that it is not reachable over the internet. */
interface Cidr {
  readonly cidr: string
  readonly private: boolean
}

/** Parses an IPv4 or IPv6 range. A bare address is a range of one. Host bits and prefix length 0 are refused. */
export function readCidr(text: string): Read<Cidr> {
  const match = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text)
  const [, address = '', length] = match ?? []
  const v4 = ipaddr.IPv4.isValidFourPartDecimal(address)
  if (!match || !(v4 || (address.includes(':') && ipaddr.IPv6.isValid(address)))) return no('is not an address range')
  const parsed = ipaddr.parse(address)
  if (parsed.kind() === 'ipv6' && (parsed as ipaddr.IPv6).isIPv4MappedAddress())
    return no('is an IPv4-mapped address: write it as IPv4')
  const bits = v4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return no(`has a prefix longer than ${bits}`)
  if (prefix === 0) return no('is every address: name the ranges that calls come from')
  const bytes = parsed.toByteArray()
  if (hasHostBits(bytes, prefix)) return no(`has host bits set: did you mean ${networkOf(bytes, prefix, v4)}?`)
  const range = parsed.range()
  if (['multicast', 'broadcast', 'unspecified'].includes(range)) return no(`is a ${range} range`)
  return { ok: true, value: { cidr: `${parsed.toString()}/${prefix}`, private: range !== 'unicast' } }
}

function hasHostBits(bytes: readonly number[], prefix: number): boolean {
  return bytes.some((byte, at) => (byte & ~maskAt(at, prefix) & 0xff) !== 0)
}

const maskAt = (at: number, prefix: number): number => {
  const ones = Math.max(0, Math.min(8, prefix - at * 8))
  return (0xff << (8 - ones)) & 0xff
}

function networkOf(bytes: readonly number[], prefix: number, v4: boolean): string {
  const network = bytes.map((byte, at) => byte & maskAt(at, prefix))
  return `${(v4 ? new ipaddr.IPv4(network) : new ipaddr.IPv6(network)).toString()}/${prefix}`
}
