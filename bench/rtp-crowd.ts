import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createEngine, type Engine, type Stream, type StreamDescription } from '../native/index.ts'

/** Many telephones on a few sockets of this machine, each with a stream of one data plane. */

interface Member {
  readonly stream: Stream
  /** Sends a payload to the stream with the next number. */
  send(payload: Buffer): void
}

interface Crowd {
  readonly engine: Engine
  readonly members: readonly Member[]
  close(): void
}

export interface Format {
  readonly payload_type: number
  readonly codec: string
  readonly clock_rate: number
}

const SOCKETS = 16
/** Packets that latch a stream, so that its socket is connected as in a call. */
const LATCHING = 20

export async function openCrowd(size: number, formatOf: (index: number) => Format): Promise<Crowd> {
  const engine = createEngine(
    // On the loopback device a packet ring would also see what we send, which no other device shows.
    { threads: 1, bind_address: '127.0.0.1', port_min: 0, port_max: 0, quarantine_ms: 0, packet_ring: false },
    () => undefined,
  )
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, openSocket))
  const members = Array.from({ length: size }, (_, index) => {
    const stream = engine.openSession().openStream({ validation: 'relaxed', sources: [], signalled_from: null })
    const socket = sockets[index % SOCKETS]
    if (!stream || !socket) throw new Error('no port is left')
    const format = formatOf(index)
    stream.describe(description(format, socket.address().port))
    return member(stream, socket, format, index)
  })
  for (let packet = 0; packet < LATCHING; packet++) {
    for (const one of members) one.send(Buffer.alloc(160, 0xff))
    await pause(20)
  }
  return {
    engine,
    members,
    close() {
      engine.close()
      for (const socket of sockets) socket.close()
    },
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4096 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}

const description = (format: Format, rtp_port: number): StreamDescription => ({
  remote: { address: '127.0.0.1', rtp_port },
  direction: 'sendrecv',
  receive: [format],
  send: { ...format, ptime_ms: 20 },
  fills_idle: true,
  srtp: null,
})

function member(stream: Stream, socket: Socket, format: Format, ssrc: number): Member {
  let sequence = 0
  return {
    stream,
    send(payload) {
      const packet = Buffer.alloc(12 + payload.length)
      packet[0] = 0x80
      packet[1] = format.payload_type
      packet.writeUInt16BE(sequence & 0xffff, 2)
      packet.writeUInt32BE((sequence * (format.clock_rate / 50)) >>> 0, 4)
      packet.writeUInt32BE(ssrc, 8)
      payload.copy(packet, 12)
      sequence++
      socket.send(packet, stream.rtp_port, '127.0.0.1')
    },
  }
}

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

const sleeping = new Int32Array(new SharedArrayBuffer(4))

/** Stops this process. Its sockets fill up, so that waking their reader is no part of the cost of a packet. */
export const standStill = (ms: number): unknown => Atomics.wait(sleeping, 0, 0, ms)

/** The packets that the data plane sends in a second, and its share of a core, while `wait` runs. */
export async function measure(engine: Engine, wait: () => unknown): Promise<{ packets: number; percent: number }> {
  const now = () => {
    const [thread] = engine.stats().threads
    if (!thread) throw new Error('no packet thread')
    return { at_ms: performance.now(), cpu: thread.cpu_seconds, sent: thread.packets_sent }
  }
  const before = now()
  await wait()
  const after = now()
  const passed = (after.at_ms - before.at_ms) / 1000
  return { packets: (after.sent - before.sent) / passed, percent: (100 * (after.cpu - before.cpu)) / passed }
}

/** Writes the results and sets the exit code when a limit is not kept. */
export function report(subject: string, results: Readonly<Record<string, number>>, kept: boolean): void {
  mkdirSync('bench/results', { recursive: true })
  writeFileSync(`bench/results/${subject}.json`, `${JSON.stringify(results, null, 2)}\n`)
  if (!kept) process.exitCode = 1
}
