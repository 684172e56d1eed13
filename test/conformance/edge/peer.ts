import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { createEdge, type Edge, type EdgeOptions } from '../../../signaling/edge/index.ts'
import type { Test } from '../../support/harness/index.ts'
import { isMediaOfOthers } from '../../support/ports.ts'
import { ALL_VERBS, type Robot, startRobot } from './robot.ts'
import { testClock } from './test-clock.ts'

// The edge under test, and peers that send it any bytes over real sockets.

/** An offer, or an answer: one audio stream in PCMU. */
export const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'

/** An edge on its own ports, with an application on the raw control link. */
export interface World {
  readonly edge: Edge
  readonly robot: Robot
  readonly faults: unknown[]
  readonly port: number
}

/** Opens an edge and closes it at the end of the test, which fails when the edge has logged an error. */
export async function world(t: Test, options: Partial<EdgeOptions> = {}): Promise<World> {
  const faults: unknown[] = []
  const edge = await createEdge({
    listeners: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
    ],
    control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
    clock: testClock(),
    log: { debug: () => 0, info: () => 0, warn: () => 0, error: facts => faults.push(facts) },
    ...options,
  })
  const robot = await startRobot(edge.control.port, ALL_VERBS)
  t.teardown(() => {
    robot.close()
    edge.close()
    if (faults.length > 0) throw new Error(`the edge logged errors: ${JSON.stringify(faults)}`)
  })
  return { edge, robot, faults, port: edge.listeners[0]?.port ?? 0 }
}

/** A UDP peer that sends what the test gives it and keeps what arrives. */
export class Peer {
  readonly arrived: string[] = []
  readonly #socket: DatagramSocket

  constructor(socket: DatagramSocket) {
    this.#socket = socket
    socket.on('message', data => {
      const text = data.toString('latin1')
      // A blank one is a keep-alive.
      if (text.trim() === '' || isMediaOfOthers(data)) return
      this.arrived.push(text)
      socket.emit('arrived')
    })
  }

  static async open(t: Test, host = '127.0.0.1'): Promise<Peer> {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.bind(0, host)
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    return new Peer(socket)
  }

  get port(): number {
    return this.#socket.address().port
  }

  send(text: string, port: number, host = '127.0.0.1'): void {
    this.#socket.send(Buffer.from(text, 'latin1'), port, host)
  }

  /** Removes and returns the first matching message; waits for one. */
  async next(fits: (text: string) => boolean): Promise<string> {
    for (;;) {
      const found = this.arrived.find(fits)
      if (found !== undefined) {
        this.arrived.splice(this.arrived.indexOf(found), 1)
        return found
      }
      await once(this.#socket, 'arrived')
    }
  }
}

let serial = 0

/** Returns a request as text. Call-ID and branch are new unless they are given. */
export function request(
  method: string,
  port: number,
  parts: {
    headers?: readonly string[]
    body?: string
    branch?: string
    to_tag?: string
    call_id?: string
    cseq?: number
    uri?: string
    via?: string
    from_tag?: string
  } = {},
): string {
  const { body = '', headers = [], call_id = `call-${++serial}`, cseq = 1, branch = `z9hG4bK${++serial}` } = parts
  return [
    `${method} ${parts.uri ?? 'sip:app@127.0.0.1'} SIP/2.0`,
    `Via: ${parts.via ?? 'SIP/2.0/UDP'} 127.0.0.1:${port};branch=${branch};rport`,
    `From: <sip:alice@127.0.0.1>;tag=${parts.from_tag ?? 'a'}`,
    `To: <sip:app@127.0.0.1>${parts.to_tag === undefined ? '' : `;tag=${parts.to_tag}`}`,
    `Call-ID: ${call_id}`,
    `CSeq: ${cseq} ${method}`,
    `Contact: <sip:alice@127.0.0.1:${port}>`,
    ...headers,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

export const status = (code: number, method?: string) => (text: string) =>
  text.startsWith(`SIP/2.0 ${code} `) && (method === undefined || text.includes(` ${method}\r\n`))
export const final = (text: string): boolean => /^SIP\/2\.0 [2-6]/.test(text)
/** Matches a final response to this request, not retransmissions of a final response to an earlier INVITE. */
export const finalTo = (request: string) => (text: string) =>
  final(text) && text.includes(`;branch=${branchOf(request)};`)
export const branchOf = (text: string): string => /\r\nVia:[^\r]*;branch=([^;\r]+)/i.exec(text)?.[1] ?? ''
export const starts = (method: string) => (text: string) => text.startsWith(`${method} `)
export const tagOf = (text: string): string => /\r\nTo: [^\r]*;tag=([^;\r]+)/.exec(text)?.[1] ?? ''

/** Returns a response to a request. */
export function reply(request: string, code: number, tag: string, body: string, port: number): string {
  const line = (name: string): string => new RegExp(`^${name}: .*$`, 'm').exec(request)?.[0].trimEnd() ?? ''
  const to = line('To')
  return [
    `SIP/2.0 ${code} X`,
    line('Via'),
    line('From'),
    to.includes(';tag=') ? to : `${to};tag=${tag}`,
    line('Call-ID'),
    line('CSeq'),
    `Contact: <sip:bob@127.0.0.1:${port}>`,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** Returns the port in a request's Via. */
export const portOf = (request: string): number => Number(/^Via: SIP\/2\.0\/UDP [^:]+:(\d+)/m.exec(request)?.[1])

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
