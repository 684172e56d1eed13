import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RtpPeer } from './rtp-peer.ts'

/** Runs tshark on a capture. Returns what it prints. */
async function tshark(capture: Buffer, words: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-capture-'))
  const file = join(folder, 'capture')
  try {
    writeFileSync(file, capture)
    return (await promisify(execFile)('tshark', ['-r', file, ...words])).stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const CHECKED = ['ip', 'udp', 'tcp'].flatMap(protocol => ['-o', `${protocol}.check_checksum:TRUE`])

/** Returns the values of these fields for each packet of a capture. */
export async function packetsIn(capture: Buffer, ...fields: string[]): Promise<string[][]> {
  const text = await tshark(capture, [...CHECKED, '-T', 'fields', ...fields.flatMap(field => ['-e', field])])
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => line.split('\t'))
}

/** What a peer's socket sent and received, as a capture that tshark reads. */
interface Capture {
  /** The RTP packets of each direction, as `tshark -z rtp,streams` counts them. */
  counted(): Promise<{ readonly sent: number; readonly received: number }>
}

const IP_BYTES = 20
const UDP_BYTES = 8
/** LINKTYPE_RAW: packets begin with their IP header. */
const RAW_IP = 101

/** Captures the packets of a peer from now on. */
export function capture(peer: RtpPeer): Capture {
  const packets: { readonly bytes: Buffer; readonly sent: boolean; readonly port: number; readonly at_ms: number }[] =
    []
  peer.onPacket = (bytes, sent, port) => packets.push({ bytes, sent, port, at_ms: Date.now() })
  const file = (): Buffer => {
    const head = Buffer.alloc(24)
    head.writeUInt32LE(0xa1b2c3d4, 0)
    head.writeUInt16LE(2, 4)
    head.writeUInt16LE(4, 6)
    head.writeUInt32LE(65_535, 16)
    head.writeUInt32LE(RAW_IP, 20)
    return Buffer.concat([head, ...packets.flatMap(one => written(one, peer.port))])
  }
  return {
    async counted() {
      const decode = ['-d', `udp.port==${peer.port},rtp`]
      return countsIn(await tshark(file(), ['-q', ...decode, '-z', 'rtp,streams']), peer.port)
    },
  }
}

function written(
  { bytes, sent, port, at_ms }: { bytes: Buffer; sent: boolean; port: number; at_ms: number },
  own_port: number,
): Buffer[] {
  const length = IP_BYTES + UDP_BYTES + bytes.length
  const head = Buffer.alloc(16 + IP_BYTES + UDP_BYTES)
  head.writeUInt32LE(Math.floor(at_ms / 1000), 0)
  head.writeUInt32LE((at_ms % 1000) * 1000, 4)
  head.writeUInt32LE(length, 8)
  head.writeUInt32LE(length, 12)
  const [ip, udp] = [head.subarray(16), head.subarray(16 + IP_BYTES)]
  ip[0] = 0x45
  ip.writeUInt16BE(length, 2)
  ip[8] = 64
  ip[9] = 17
  for (const at of [12, 16]) ip.writeUInt32BE(0x7f000001, at)
  udp.writeUInt16BE(sent ? own_port : port, 0)
  udp.writeUInt16BE(sent ? port : own_port, 2)
  udp.writeUInt16BE(UDP_BYTES + bytes.length, 4)
  return [head, bytes]
}

/** Adds up the streams of tshark's table: times, source, port, destination, port, SSRC, payload, packets. */
function countsIn(table: string, own_port: number): { sent: number; received: number } {
  const counts = { sent: 0, received: 0 }
  for (const line of table.split('\n')) {
    const match = /127\.0\.0\.1\s+(\d+)\s+127\.0\.0\.1\s+\d+\s+0x[0-9A-Fa-f]+\s+(.+?)\s+(\d+)\s+-?\d+\s+\(/.exec(line)
    if (match) counts[Number(match[1]) === own_port ? 'sent' : 'received'] += Number(match[3])
  }
  return counts
}
