import ipaddr from 'ipaddr.js'
import type { CallMessage } from './message.ts'
import { inOctets } from './octets.ts'

/**
 * Writes the SIP messages of a call as a capture (pcapng, draft-ietf-opsawg-pcapng) that Wireshark, tshark and sngrep
 * read: an IP packet for each message, with its addresses, ports and time. What was encrypted on the wire stands in a
 * UDP packet, because its text is no TLS; the comment of the packet says so.
 */

type Captured = Pick<CallMessage, 'at_ms' | 'direction' | 'protocol' | 'local' | 'remote' | 'text'>

const SECTION = 0x0a0d0d0a
const INTERFACE = 1
const PACKET = 6
const BYTE_ORDER = 0x1a2b3c4d
/** IP packets without a link layer. */
const LINKTYPE_RAW = 101
const COMMENT = 1
const PROGRAM = 4
const FLAGS = 2
const TCP = 6
const UDP = 17
/** The most octets of a message in one packet: an IP packet has at most 65,535. */
const MAX_OCTETS = 65_000

/** `own` are the addresses of the platform, for messages of sockets that are bound to all; `comment` is a free text. */
export function pcapng(messages: readonly Captured[], own: readonly string[], comment: string): Buffer {
  const version = Buffer.alloc(16)
  version.writeUInt32LE(BYTE_ORDER, 0)
  version.writeUInt16LE(1, 4)
  // The length of the section is not given.
  version.fill(0xff, 8)
  const link = Buffer.alloc(8)
  link.writeUInt16LE(LINKTYPE_RAW, 0)
  const streams = new Map<string, number>()
  return Buffer.concat([
    block(SECTION, [version, option(COMMENT, comment), option(PROGRAM, 'Strowger'), END]),
    block(INTERFACE, [link]),
    ...messages.flatMap(message => packets(message, own, streams)),
  ])
}

/** Returns the packets of a message. `streams` has the octets that each direction of a TCP connection has sent. */
function packets(message: Captured, own: readonly string[], streams: Map<string, number>): Buffer[] {
  const remote = endOf(message.remote)
  const local = endOf(message.local)
  const bound = ipaddr.parse(local.host).range() !== 'unspecified'
  const kind = ipaddr.process(remote.host).kind()
  const host = bound ? local.host : (own.find(one => ipaddr.process(one).kind() === kind) ?? local.host)
  const here = { ...local, host }
  const [source, target] = message.direction === 'in' ? [remote, here] : [here, remote]
  const octets = Buffer.from(inOctets(message.text, keyOfZeros), 'latin1')
  const plain = message.protocol === 'udp' || message.protocol === 'tcp'
  const packet = (ip: Buffer, note: string): Buffer => {
    const options = note === '' ? [] : [option(COMMENT, note)]
    const flags = Buffer.alloc(4)
    flags.writeUInt32LE(message.direction === 'in' ? 1 : 2)
    const head = Buffer.alloc(20)
    const at_us = BigInt(Math.round(message.at_ms * 1000))
    head.writeUInt32LE(Number(at_us >> 32n), 4)
    head.writeUInt32LE(Number(at_us & 0xffffffffn), 8)
    head.writeUInt32LE(ip.length, 12)
    head.writeUInt32LE(ip.length, 16)
    return block(PACKET, [head, padded(ip), ...options, option(FLAGS, flags), END])
  }
  if (message.protocol === 'tcp') {
    const [out, back] = [`${keyOf(source)} ${keyOf(target)}`, `${keyOf(target)} ${keyOf(source)}`]
    const parts: Buffer[] = []
    for (let at = 0; at < octets.length; at += MAX_OCTETS) {
      const part = octets.subarray(at, at + MAX_OCTETS)
      const sent = streams.get(out) ?? 0
      parts.push(packet(tcp(source, target, { sequence: sent, acknowledged: streams.get(back) ?? 0 }, part), ''))
      streams.set(out, sent + part.length)
    }
    return parts
  }
  const cut = octets.length > MAX_OCTETS ? `; the last ${octets.length - MAX_OCTETS} octets are left out` : ''
  const note = plain ? cut.slice(2) : `SIP over ${message.protocol}, decrypted${cut}`
  return [packet(udp(source, target, octets.subarray(0, MAX_OCTETS)), note)]
}

/** In place of a masked SRTP key: readers decode it, and call a message without a whole one malformed. */
const keyOfZeros = (suite: string): string => Buffer.alloc(/256/.test(suite) ? 46 : 30).toString('base64')

interface End {
  readonly host: string
  readonly port: number
}

const keyOf = ({ host, port }: End): string => `${host}:${port}`

function endOf(text: string): End {
  const at = text.lastIndexOf(':')
  const host = text.slice(0, at).replace(/^\[|\]$/g, '')
  return { host: host.split('%')[0] ?? host, port: Number(text.slice(at + 1)) }
}

function udp(source: End, target: End, octets: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt16BE(source.port, 0)
  head.writeUInt16BE(target.port, 2)
  head.writeUInt16BE(8 + octets.length, 4)
  // A sum of zero is sent as its complement (RFC 768).
  return ip(source, target, UDP, head, { octets, sum_at: 6, zero: 0xffff })
}

function tcp(
  source: End,
  target: End,
  { sequence, acknowledged }: { readonly sequence: number; readonly acknowledged: number },
  octets: Buffer,
): Buffer {
  const head = Buffer.alloc(20)
  head.writeUInt16BE(source.port, 0)
  head.writeUInt16BE(target.port, 2)
  head.writeUInt32BE((1 + sequence) >>> 0, 4)
  head.writeUInt32BE((1 + acknowledged) >>> 0, 8)
  head.writeUInt16BE((5 << 12) | PUSH_AND_ACK, 12)
  head.writeUInt16BE(0xffff, 14)
  return ip(source, target, TCP, head, { octets, sum_at: 16, zero: 0 })
}

const PUSH_AND_ACK = 0x18

/** Returns an IP packet with the header of a transport (RFC 791, RFC 8200), whose checksum it puts in. */
function ip(
  source: End,
  target: End,
  protocol: number,
  head: Buffer,
  { octets, sum_at, zero }: { readonly octets: Buffer; readonly sum_at: number; readonly zero: number },
): Buffer {
  const [from, to] = [addressOf(source.host), addressOf(target.host)]
  const length = head.length + octets.length
  const pseudo = Buffer.alloc(8)
  pseudo.writeUInt32BE(length, 0)
  pseudo.writeUInt32BE(protocol, 4)
  head.writeUInt16BE(checksum(Buffer.concat([from, to, pseudo, head, octets])) || zero, sum_at)
  if (from.length === 16) {
    const v6 = Buffer.alloc(8)
    v6.writeUInt8(0x60, 0)
    v6.writeUInt16BE(length, 4)
    v6.writeUInt8(protocol, 6)
    v6.writeUInt8(HOPS, 7)
    return Buffer.concat([v6, from, to, head, octets])
  }
  const v4 = Buffer.alloc(12)
  v4.writeUInt8(0x45, 0)
  v4.writeUInt16BE(20 + length, 2)
  v4.writeUInt8(HOPS, 8)
  v4.writeUInt8(protocol, 9)
  v4.writeUInt16BE(checksum(Buffer.concat([v4, from, to])), 10)
  return Buffer.concat([v4, from, to, head, octets])
}

const HOPS = 64

const addressOf = (host: string): Buffer => Buffer.from(ipaddr.process(host).toByteArray())

/** The Internet checksum (RFC 1071). */
function checksum(bytes: Buffer): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000)
  return ~sum & 0xffff
}

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])

function option(code: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value as string).subarray(0, 0xffff)
  const head = Buffer.alloc(4)
  head.writeUInt16LE(code, 0)
  head.writeUInt16LE(bytes.length, 2)
  return Buffer.concat([head, padded(bytes)])
}

const END = Buffer.alloc(4)

function block(type: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(8)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(12 + body.length)
  head.writeUInt32LE(type, 0)
  length.copy(head, 4)
  return Buffer.concat([head, body, length])
}
