import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { parseUri } from '../../signaling/edge/sip/uri.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'

/** What the far end observed of one call. Times are milliseconds of the monotonic clock. */
interface Heard {
  readonly answered_ms: number
  /** Time of the first packet with sound; null before it. */
  first_sound_ms: number | null
  ended: boolean
}

interface FarEnd {
  readonly port: number
  /** Calls by called number, without the plus sign. */
  readonly calls: ReadonlyMap<string, Heard>
  close(): void
}

const RTP_HEADER_BYTES = 12
const MARKER = 0x80

/** Starts a telephone network on loopback that answers every call at once and listens for the first sound. */
export async function farEnd(): Promise<FarEnd> {
  const calls = new Map<string, Heard>()
  const sockets = new Set<Socket>()
  const agent = await UserAgent.open({
    listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    incoming: call => void take(call).catch(error => console.error(error)),
  })
  return {
    port: agent.port('udp'),
    calls,
    close() {
      agent.close()
      for (const socket of sockets) socket.close()
    },
  }

  async function take(call: UserAgentCall): Promise<void> {
    const socket = createSocket('udp4')
    sockets.add(socket)
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    const heard: Heard = { answered_ms: performance.now(), first_sound_ms: null, ended: false }
    calls.set(calledUser(call), heard)
    socket.on('message', packet => {
      if (heard.first_sound_ms === null && isSound(packet)) heard.first_sound_ms = performance.now()
    })
    call.events.ended = () => {
      heard.ended = true
      if (sockets.delete(socket)) socket.close()
    }
    call.answer({ body: sdp(socket.address().port) })
  }
}

/** Reports whether PCMU is not silent: most samples exceed the quietest codes of both signs (ITU-T G.711 table 2b). */
function isSound(packet: Buffer): boolean {
  if (packet.length <= RTP_HEADER_BYTES || ((packet[1] ?? 0) & ~MARKER) !== 0) return false
  const payload = packet.subarray(RTP_HEADER_BYTES)
  let loud = 0
  for (const sample of payload) if ((sample & 0x7f) < 0x60) loud++
  return loud > payload.length / 2
}

const calledUser = (call: UserAgentCall): string => (parseUri(call.invite?.uri ?? '')?.user ?? '').replace(/^\+/, '')

const sdp = (port: number): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP 0`,
    'a=rtpmap:0 PCMU/8000',
    'a=ptime:20',
    '',
  ].join('\r\n')
