import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { decodeG711, encodeG711, type G711, levelDbm0, sounding, tone, toneLevelDbm0 } from './audio.ts'
import { PATIENCE_MS } from './wait.ts'

/** The packets that wait while this process gets no CPU: the default loses them after five seconds. */
const KEPT_BYTES = 2 ** 20

/**
 * An RTP endpoint for tests: it sends and receives real packets on 127.0.0.1, paced by the clock as a telephone does.
 */

interface RtpPacket {
  readonly payload_type: number
  readonly marker: boolean
  readonly sequence: number
  readonly timestamp: number
  readonly ssrc: number
  readonly payload: Buffer
  readonly from_port: number
  /** Milliseconds of the monotonic clock. */
  readonly at_ms: number
}

export interface PeerOptions {
  readonly codec?: G711
  /** Payload type of the audio; the codec's static one by default. */
  readonly payload_type?: number
  /** The codec's name and rate in the SDP, for codecs that this peer does not implement. */
  readonly rtpmap?: string
  readonly event_payload_type?: number
  readonly address?: string
  /** Its port; by default one that the system chooses. */
  readonly port?: number
  /** Encrypt outgoing and decrypt incoming packets (SRTP). */
  readonly protect?: (packet: Buffer) => Buffer
  readonly unprotect?: (packet: Buffer) => Buffer | null
}

const FRAME_MS = 20
/** Packets that are late by less than this are sent at once. Jitter buffers hold this much. */
const CATCH_UP_MS = 200
/** Listeners notice a pause of this length. */
const PAUSE_MS = 60
const STATIC = { PCMU: 0, PCMA: 8 } as const

function readRtp(bytes: Buffer, from_port = 0): RtpPacket | null {
  if (bytes.length < 12 || (bytes[0] ?? 0) >> 6 !== 2) return null
  const second = bytes[1] ?? 0
  return {
    payload_type: second & 0x7f,
    marker: second >= 0x80,
    sequence: bytes.readUInt16BE(2),
    timestamp: bytes.readUInt32BE(4),
    ssrc: bytes.readUInt32BE(8),
    payload: bytes.subarray(12 + 4 * ((bytes[0] ?? 0) & 0x0f)),
    from_port,
    at_ms: performance.now(),
  }
}

export function writeRtp(fields: Omit<RtpPacket, 'from_port' | 'at_ms'>): Buffer {
  const header = Buffer.alloc(12)
  header[0] = 0x80
  header[1] = (fields.marker ? 0x80 : 0) | fields.payload_type
  header.writeUInt16BE(fields.sequence & 0xffff, 2)
  header.writeUInt32BE(fields.timestamp >>> 0, 4)
  header.writeUInt32BE(fields.ssrc >>> 0, 8)
  return Buffer.concat([header, fields.payload])
}

export class RtpPeer {
  readonly port: number
  readonly received: RtpPacket[] = []
  /** Sees each RTP packet that passes the socket, with the port at the other end. */
  onPacket: ((bytes: Buffer, sent: boolean, port: number) => void) | null = null
  /** How many packets this peer has sent. */
  sent = 0
  readonly #socket: Socket
  readonly #options: PeerOptions
  readonly #codec: G711
  readonly #ssrc = Math.floor(Math.random() * 2 ** 32)
  #target_port = 0
  #target_address = '127.0.0.1'
  #sequence = Math.floor(Math.random() * 0x8000)
  #timestamp = Math.floor(Math.random() * 0x7fff_ffff)
  #arrived: (() => void)[] = []
  #closed = false
  /** The longest delay of a packet, or of what follows the last one, since the last `unpaused` began. */
  #latest_ms = 0

  /** Use `openRtpPeer`. */
  constructor(socket: Socket, options: PeerOptions) {
    this.#socket = socket
    this.#options = options
    this.#codec = options.codec ?? 'PCMU'
    this.port = socket.address().port
    socket.on('message', (message: Buffer, from: RemoteInfo) => this.#receive(message, from))
  }

  get address(): string {
    return this.#socket.address().address
  }

  get ssrc(): number {
    return this.#ssrc
  }

  /** Sets the destination of further packets. */
  sendTo(port: number, address = '127.0.0.1'): void {
    this.#target_port = port
    this.#target_address = address
  }

  /** Where packets go: port and address. */
  get target(): [number, string] {
    return [this.#target_port, this.#target_address]
  }

  /** Returns a minimal SDP of this peer, for offers and answers. */
  sdp(over: { direction?: string; version?: number; attributes?: readonly string[]; address?: string } = {}): string {
    const { codec = 'PCMU', event_payload_type: event, payload_type = STATIC[codec] } = this.#options
    const { address = '127.0.0.1' } = over
    const family = isIPv6(address) ? 'IP6' : 'IP4'
    return [
      'v=0',
      `o=peer 1 ${over.version ?? 1} IN ${family} ${address}`,
      's=-',
      `c=IN ${family} ${address}`,
      't=0 0',
      `m=audio ${this.port} RTP/AVP ${payload_type}${event === undefined ? '' : ` ${event}`}`,
      `a=rtpmap:${payload_type} ${this.#options.rtpmap ?? `${codec}/8000`}`,
      ...(event === undefined ? [] : [`a=rtpmap:${event} telephone-event/8000`, `a=fmtp:${event} 0-15`]),
      `a=${over.direction ?? 'sendrecv'}`,
      ...(over.attributes ?? []).map(attribute => `a=${attribute}`),
      '',
    ].join('\r\n')
  }

  /**
   * Sends samples at 8 kHz in real time, 20 ms per packet. Resolves when the last packet has left, or earlier, after
   * the packet at which `ended` holds.
   */
  async send(samples: Int16Array, ended: () => boolean = () => false): Promise<void> {
    const frame = 8 * FRAME_MS
    const payloads: Buffer[] = []
    for (let at = 0; at + frame <= samples.length; at += frame)
      payloads.push(encodeG711(this.#codec, samples.subarray(at, at + frame)))
    await this.sendPayloads(payloads, frame, FRAME_MS, ended)
  }

  /**
   * Sends samples until `heard` settles, and resolves with what it gives: how much of a sound passes a jitter buffer or
   * a mixer depends on the pace of the machine.
   */
  async sendUntil<T>(samples: Int16Array, heard: Promise<T>): Promise<T> {
    let over = false
    const sending = this.send(samples, () => over)
    try {
      return await heard
    } finally {
      over = true
      await sending
    }
  }

  /** Like `send`, with random loss and jitter from a seed. Packets may arrive out of order. */
  async sendImpaired(samples: Int16Array, how: { loss: number; jitter_ms: number; seed: number }): Promise<void> {
    const frame = 8 * FRAME_MS
    const payload_type = this.#options.payload_type ?? STATIC[this.#codec]
    let state = how.seed
    // Park and Miller's generator: the same seed gives the same network.
    const random = () => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    const pace = new Pace(FRAME_MS)
    const sending: Promise<void>[] = []
    for (let at = 0; at + frame <= samples.length; at += frame) {
      const missed = await this.#next(pace)
      this.#timestamp += missed * frame
      const payload = encodeG711(this.#codec, samples.subarray(at, at + frame))
      const bytes = writeRtp({
        payload_type,
        payload,
        marker: at === 0 || missed > 0,
        sequence: this.#sequence++,
        timestamp: this.#timestamp,
        ssrc: this.#ssrc,
      })
      this.#timestamp += frame
      const delay_ms = random() * how.jitter_ms
      if (random() < how.loss) continue
      sending.push(until(performance.now() + delay_ms).then(() => this.raw(bytes)))
    }
    await Promise.all(sending)
  }

  /**
   * Sends encoded payloads in real time; `step` is the timestamp increment. When this process was stopped meanwhile,
   * the peer was silent for that time and goes on with a new talkspurt (RFC 3551 §4.1): a burst would overflow buffers.
   */
  async sendPayloads(
    payloads: readonly Buffer[],
    step: number,
    frame_ms = FRAME_MS,
    ended: () => boolean = () => false,
  ): Promise<void> {
    const pace = new Pace(frame_ms)
    const payload_type = this.#options.payload_type ?? STATIC[this.#codec]
    for (const [index, payload] of payloads.entries()) {
      const missed = await this.#next(pace)
      this.#timestamp += missed * step
      this.packet({ payload_type, payload, marker: index === 0 || missed > 0 })
      this.#timestamp += step
      if (ended()) break
    }
    await this.#next(pace)
  }

  /**
   * Sends one key by RFC 4733: the beginning, updates, and the end three times. With `moving`, each packet but the
   * repeated ends has the timestamp of its own time, as some gateways send it.
   */
  async sendKey(
    key: string,
    ms = 100,
    how: { ends?: number; marker?: boolean; event_payload_type?: number; moving?: boolean } = {},
  ): Promise<void> {
    const payload_type = how.event_payload_type ?? this.#options.event_payload_type ?? 101
    const event = '0123456789*#ABCD'.indexOf(key)
    const steps = Math.max(1, Math.round(ms / FRAME_MS))
    const pace = new Pace(FRAME_MS)
    const payload = (end: boolean, duration: number) =>
      Buffer.from([event, end ? 0x8a : 0x0a, duration >> 8, duration & 0xff])
    for (let step = 1; step <= steps; step++) {
      await this.#next(pace)
      const marker = step === 1 && how.marker !== false
      this.packet({ payload_type, payload: payload(false, step * 8 * FRAME_MS), marker })
      if (how.moving) this.#timestamp += 8 * FRAME_MS
    }
    for (let end = 0; end < (how.ends ?? 3); end++) {
      this.packet({ payload_type, payload: payload(true, steps * 8 * FRAME_MS), marker: false })
    }
    if (!how.moving) this.#timestamp += steps * 8 * FRAME_MS
    await this.#next(pace)
  }

  /** Sends one packet with the next sequence number and the current timestamp. */
  packet(fields: { payload_type: number; payload: Buffer; marker: boolean }): void {
    const bytes = writeRtp({ ...fields, sequence: this.#sequence++, timestamp: this.#timestamp, ssrc: this.#ssrc })
    this.raw(this.#options.protect?.(bytes) ?? bytes)
  }

  /** Sends bytes, unless the peer is closed: the rest of a tone may outlast the test. */
  raw(bytes: Buffer, port = this.#target_port): void {
    if (this.#closed) return
    this.sent++
    this.onPacket?.(bytes, true, port)
    this.#socket.send(bytes, port, this.#target_address)
  }

  /** Waits until `count` packets have arrived in total. */
  async packets(count: number, limit_ms = PATIENCE_MS): Promise<readonly RtpPacket[]> {
    return this.until(received => received.length >= count, limit_ms, `${count} packets`)
  }

  /** Waits for a condition on all packets so far. Checks it with every packet. */
  async until(
    holds: (received: readonly RtpPacket[]) => boolean,
    limit_ms = PATIENCE_MS,
    what = 'the condition',
  ): Promise<readonly RtpPacket[]> {
    const deadline_ms = performance.now() + limit_ms
    while (!holds(this.received)) {
      const left_ms = deadline_ms - performance.now()
      if (left_ms <= 0) throw new Error(`${what} did not come in ${limit_ms} ms (${this.received.length} packets came)`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left_ms)
        this.#arrived.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
    return this.received
  }

  /** Waits until nothing has come for 60 ms, however late this process reads, and returns how many packets came. */
  async settled(): Promise<number> {
    const deadline_ms = performance.now() + PATIENCE_MS
    for (let [before, calm] = [-1, 0]; calm < 3; calm = this.received.length === before ? calm + 1 : 0) {
      if (performance.now() > deadline_ms) throw new Error(`packets came for ${PATIENCE_MS} ms`)
      before = this.received.length
      await new Promise(resolve => setTimeout(resolve, FRAME_MS))
    }
    return this.received.length
  }

  /** Returns the audio of packets `from` to `to`, placed by RTP timestamp. Gaps are silence. */
  audio(from = 0, to = Number.POSITIVE_INFINITY): Int16Array {
    return this.#laidOut(this.received.slice(from, to))
  }

  /** Waits until the sound of all packets so far lasts `ms`, without its pauses, and returns it (see `sounding`). */
  async sound(ms: number): Promise<Int16Array> {
    const heard = (): Int16Array => sounding(this.audio())
    const loud = this.#loud(0)
    await this.until(() => loud() >= ms * 8 && heard().length >= ms * 8, PATIENCE_MS, `sound of ${ms} ms`)
    return heard()
  }

  /** Waits for sound after the first `from` packets. */
  async sounds(from = this.received.length): Promise<void> {
    const loud = this.#loud(from)
    await this.until(() => loud() > 0, PATIENCE_MS, 'sound')
  }

  /**
   * Returns what counts the samples of sound after the first `from` packets. It measures each packet once: on a slow
   * machine all the audio so far would cost more time than it lasts.
   */
  #loud(from: number): () => number {
    let [looked, loud] = [from, 0]
    return () => {
      for (; looked < this.received.length; looked++)
        loud += sounding(this.#laidOut(this.received.slice(looked, looked + 1))).length
      return loud
    }
  }

  /**
   * Sends what means something only without a pause in it, such as a key's tones. `attempt` sends by this peer, and is
   * repeated when this process was stopped during it, for as long as a wait may last. Resolves with the number of
   * attempts, of which the last one counts.
   */
  async unpaused(attempt: () => Promise<unknown>): Promise<number> {
    const begun_ms = performance.now()
    for (let attempts = 1; ; attempts++) {
      this.#latest_ms = 0
      await attempt()
      if (this.#latest_ms < PAUSE_MS || performance.now() - begun_ms > PATIENCE_MS) return attempts
    }
  }

  /** Waits for the next frame. Resolves with the number of frames that a stop of this process has cost before it. */
  async #next(pace: Pace): Promise<number> {
    const { late_ms, missed } = await pace.next()
    this.#latest_ms = Math.max(this.#latest_ms, late_ms)
    return missed
  }

  #laidOut(received: readonly RtpPacket[]): Int16Array {
    const payload_type = this.#options.payload_type ?? STATIC[this.#codec]
    const packets = received.filter(packet => packet.payload_type === payload_type)
    const first = packets[0]
    const last = packets.at(-1)
    if (!first || !last) return new Int16Array(0)
    const samples = new Int16Array(((last.timestamp - first.timestamp) >>> 0) + last.payload.length)
    for (const packet of packets) {
      const at = (packet.timestamp - first.timestamp) >>> 0
      if (at + packet.payload.length <= samples.length) samples.set(decodeG711(this.#codec, packet.payload), at)
    }
    return samples
  }

  /**
   * Waits until a tone dominates: within 5 dB of the level of the latest 200 ms. A tone that has just begun does not
   * count yet, and one that has just ended no longer counts. Checks with every packet, so that it misses no tone,
   * however late this process reads them.
   */
  async hears(hz: number): Promise<void> {
    const heard = (): boolean => this.level(hz) > Math.max(-30, this.loudness() - 5)
    await this.until(heard, PATIENCE_MS, `${hz} Hz`)
  }

  /**
   * Waits until a tone has dominated 200 ms of all packets after the first `from`, as `hears` says. It finds a sound
   * that is played once, also one that has ended already.
   */
  async heard(hz: number, from = 0): Promise<void> {
    let looked = from
    const found = (): boolean => {
      while (looked < this.received.length) {
        looked++
        if (this.level(hz, looked) > Math.max(-30, this.loudness(looked) - 5)) return true
      }
      return false
    }
    await this.until(found, PATIENCE_MS, `${hz} Hz, once`)
  }

  /** Returns the level of the latest 200 ms of the first `count` packets; -Infinity when nothing came. */
  loudness(count = this.received.length): number {
    const recent = this.#recent(count)
    return recent.length < 800 ? Number.NEGATIVE_INFINITY : levelDbm0(recent)
  }

  /** Returns the level of a tone in these 200 ms; -Infinity when nothing came. */
  level(hz: number, count = this.received.length): number {
    const recent = this.#recent(count)
    return recent.length < 800 ? Number.NEGATIVE_INFINITY : toneLevelDbm0(recent, hz)
  }

  /** Joins the latest packets of a source. A pause of the sender is left out: it would drown a short beep. */
  #recent(count: number): Int16Array {
    const latest = this.received.slice(Math.max(0, count - 10), count)
    const payload_type = this.#options.payload_type ?? STATIC[this.#codec]
    const audio = latest
      .filter(packet => packet.ssrc === latest.at(-1)?.ssrc && packet.payload_type === payload_type)
      .sort((one, other) => (one.timestamp - other.timestamp) | 0)
    return decodeG711(this.#codec, Buffer.concat(audio.map(({ payload }) => payload)))
  }

  /** Returns the keys received by RFC 4733, each once. The timestamp identifies a key press. */
  keys(): { key: string; duration: number }[] {
    const payload_type = this.#options.event_payload_type ?? 101
    const keys = new Map<number, { key: string; duration: number }>()
    for (const packet of this.received) {
      if (packet.payload_type !== payload_type || packet.payload.length < 4) continue
      const key = '0123456789*#ABCD'[packet.payload[0] ?? 99] ?? '?'
      keys.set(packet.timestamp, { key, duration: packet.payload.readUInt16BE(2) })
    }
    return [...keys.values()]
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether it has been told where to send (`sendTo`). */
  get knows_peer(): boolean {
    return this.#target_port !== 0
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#socket.close()
  }

  #receive(message: Buffer, from: RemoteInfo): void {
    // Ignore RTCP on the same port (RFC 5761 §4).
    const type = (message[1] ?? 0) & 0x7f
    if (type >= 64 && type <= 95) return
    const clear = this.#options.unprotect ? this.#options.unprotect(message) : message
    const packet = clear && readRtp(clear, from.port)
    if (!packet) return
    this.onPacket?.(message, false, from.port)
    this.received.push(packet)
    for (const arrived of this.#arrived.splice(0)) arrived()
  }
}

export async function openRtpPeer(options: PeerOptions = {}): Promise<RtpPeer> {
  const { address = '127.0.0.1', port = 0 } = options
  const type = isIPv6(address) ? 'udp6' : 'udp4'
  const socket = createSocket({ type, recvBufferSize: KEPT_BYTES })
  socket.bind(port, address)
  await once(socket, 'listening')
  return new RtpPeer(socket, options)
}

/** Both send their tones until each has heard the other's. */
export async function hearEachOther(near: RtpPeer, far: RtpPeer, hz = { near: 600, far: 1000 }): Promise<void> {
  let heard = false
  const hum = async (peer: RtpPeer, own: number): Promise<void> => {
    while (!heard && !peer.closed) await peer.send(tone(own, 200))
  }
  const humming = [hum(near, hz.near), hum(far, hz.far)]
  await Promise.all([near.hears(hz.far), far.hears(hz.near)])
  heard = true
  await Promise.all(humming)
}

/** When the frames of a talkspurt are due. */
class Pace {
  #due_ms = performance.now()
  readonly #frame_ms: number
  constructor(frame_ms: number) {
    this.#frame_ms = frame_ms
  }

  /** Resolves when the next frame is due, with its delay and the frames that a stop of this process has cost. */
  async next(): Promise<{ readonly late_ms: number; readonly missed: number }> {
    await until(this.#due_ms)
    const late_ms = performance.now() - this.#due_ms
    const missed = late_ms < CATCH_UP_MS ? 0 : Math.floor(late_ms / this.#frame_ms)
    this.#due_ms += (missed + 1) * this.#frame_ms
    return { late_ms, missed }
  }
}

async function until(at_ms: number): Promise<void> {
  const wait_ms = at_ms - performance.now()
  if (wait_ms > 0) await new Promise(resolve => setTimeout(resolve, wait_ms))
}
