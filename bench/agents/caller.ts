import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { compressUlaw, expandUlaw } from '../../media/files/pcm.ts'

/** A telephone that sends a packet each 20 ms, of voice or silence, and keeps what it hears. Times are monotonic ms. */

const FRAME = 160
const HEADER_BYTES = 12
const LOUD = 500
const SILENCE = Buffer.alloc(FRAME, 0xff)

interface Heard {
  readonly at_ms: number
  readonly timestamp: number
  readonly payload: Buffer
  readonly loud: boolean
}

export class Caller {
  /** The packets since `forget`. */
  heard: Heard[] = []
  readonly #socket: Socket
  #target = 0
  #sequence = 0
  #saying: Buffer[] = []
  #began: ((at_ms: number) => void) | null = null
  #listening: (() => void)[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', packet => this.#take(packet))
  }

  static async open(): Promise<Caller> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new Caller(socket)
  }

  get sdp(): string {
    const media = [`m=audio ${this.#socket.address().port} RTP/AVP 0`, 'a=rtpmap:0 PCMU/8000', 'a=sendrecv', '']
    return ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', ...media].join('\r\n')
  }

  sendTo(port: number): void {
    this.#target = port
  }

  /** Sends the packet of this moment. */
  tick(): void {
    const voice = this.#saying.shift()
    if (voice) this.#began?.(performance.now())
    if (voice) this.#began = null
    const packet = Buffer.alloc(HEADER_BYTES + FRAME)
    packet[0] = 0x80
    packet.writeUInt16BE(this.#sequence & 0xffff, 2)
    packet.writeUInt32BE((this.#sequence * FRAME) >>> 0, 4)
    packet.writeUInt32BE(this.#socket.address().port, 8)
    ;(voice ?? SILENCE).copy(packet, HEADER_BYTES)
    this.#sequence++
    this.#socket.send(packet, this.#target, '127.0.0.1')
  }

  /** Says a vowel. Resolves with the time of its first packet. */
  say(ms: number): Promise<number> {
    this.#saying = Array.from({ length: ms / 20 }, (_, index) => vowel(index))
    return new Promise(resolve => {
      this.#began = resolve
    })
  }

  forget(): void {
    this.heard = []
  }

  /** Resolves with the first loud packet since `forget`; null when none comes in time. */
  async sound(limit_ms: number): Promise<Heard | null> {
    const late = new Promise<void>(resolve => setTimeout(resolve, limit_ms))
    const heard = new Promise<void>(resolve => this.#listening.push(resolve))
    const known = () => this.heard.find(({ loud }) => loud) ?? null
    if (!known()) await Promise.race([heard, late])
    return known()
  }

  /** Resolves when the sound since `forget` is over: all packets of a busy machine have come, and 200 ms of silence. */
  async soundEnd(limit_ms: number): Promise<void> {
    const deadline_ms = performance.now() + limit_ms
    const over = () => this.heard.length > 10 && this.heard.slice(-10).every(({ loud }) => !loud)
    while (!over() && performance.now() < deadline_ms) await new Promise(resolve => setTimeout(resolve, 50))
  }

  /** Returns when the sound that went on at `from_ms` ended: the last loud packet before 100 ms of silence. */
  soundedUntil(from_ms: number): number {
    let last_ms = from_ms
    let silent = 0
    for (const { at_ms, loud } of this.heard) {
      if (at_ms < from_ms) continue
      silent = loud ? 0 : silent + 1
      if (silent === 5) break
      if (loud) last_ms = at_ms
    }
    return last_ms
  }

  /** Returns the longest gap in the sound since `forget`, and the sound's length, in ms of its own clock. */
  sounded(): { readonly gap_ms: number; readonly length_ms: number } {
    const samples = laidOut(this.heard)
    let gap = 0
    let quiet = 0
    let first = -1
    let last = -1
    for (const [index, sample] of samples.entries()) {
      if (Math.abs(sample) < LOUD) {
        quiet++
        continue
      }
      if (first === -1) first = index
      else gap = Math.max(gap, quiet)
      last = index
      quiet = 0
    }
    return { gap_ms: gap / 8, length_ms: (last - first + 1) / 8 }
  }

  close(): void {
    this.#socket.close()
  }

  #take(packet: Buffer): void {
    if (packet.length <= HEADER_BYTES || ((packet[1] ?? 0) & 0x7f) !== 0) return
    const payload = packet.subarray(HEADER_BYTES)
    // Below 0x50, without the sign, are the louder codes (ITU-T G.711 table 2b).
    const loud = payload.some(code => (code & 0x7f) < 0x50)
    this.heard.push({ at_ms: performance.now(), timestamp: packet.readUInt32BE(4), payload, loud })
    if (loud) for (const resolve of this.#listening.splice(0)) resolve()
  }
}

/** One frame of 300 Hz. */
const vowel = (index: number): Buffer =>
  Buffer.from(
    Uint8Array.from({ length: FRAME }, (_, at) =>
      compressUlaw(Math.round(8000 * Math.sin((2 * Math.PI * 300 * (index * FRAME + at)) / 8000))),
    ),
  )

/** Places packets by their timestamps. What is missing stays silent. */
function laidOut(heard: readonly Heard[]): Int16Array {
  const begin = heard[0]?.timestamp ?? 0
  const samples = new Int16Array((((heard.at(-1)?.timestamp ?? 0) - begin) >>> 0) + FRAME)
  for (const { timestamp, payload } of heard) {
    const at = (timestamp - begin) >>> 0
    if (at + payload.length <= samples.length) samples.set(Int16Array.from(payload, expandUlaw), at)
  }
  return samples
}
