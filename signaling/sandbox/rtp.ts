import { randomBytes, randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { encode, hasSound, type Law, SILENCE_BYTE } from './g711.ts'

const PTIME_MS = 20
const SAMPLES = 160
const DTMF_EVENTS = '0123456789*#ABCD'
const DTMF_ON_PACKETS = 5
const DTMF_OFF_PACKETS = 5

/** The parts of the far end's SDP that the sandbox uses. */
export interface Remote {
  readonly address: string
  readonly port: number
  readonly law: Law
  readonly payload_type: number
  /** Payload type of RFC 4733 telephone-event; null when not offered. */
  readonly event_payload_type: number | null
}

type Mode =
  | { kind: 'silence' }
  | { kind: 'echo' }
  | { kind: 'play'; bytes: Buffer; at: number; loop: boolean; done: () => void }

/**
 * One RTP session of the sandbox (RFC 3550). It sends a packet every 20 ms once the remote is known, silence if there
 * is nothing else to send. Echo returns the received payloads.
 */
export class RtpSession {
  readonly #socket: Socket
  readonly #ssrc = randomBytes(4).readUInt32BE()
  #sequence = randomInt(65_536)
  #timestamp = randomBytes(4).readUInt32BE()
  #remote: Remote | undefined
  #mode: Mode = { kind: 'silence' }
  #digits: string[] = []
  #digit_packets = 0
  #digit_timestamp = 0
  #heard: Buffer[] = []
  #timer: NodeJS.Timeout | undefined
  #next_at = 0
  #last_heard_at = 0
  #soundHeard: (() => void) | null = null
  readonly #sound = new Promise<void>(resolve => {
    this.#soundHeard = resolve
  })

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', packet => this.#received(packet))
    // Ignore ICMP "port unreachable" errors for our packets.
    socket.on('error', () => undefined)
  }

  static open(address: string): Promise<RtpSession> {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, address, () => resolve(new RtpSession(socket)))
    })
  }

  /** Milliseconds since the last packet came, or since the start if none has. */
  get quiet_ms(): number {
    return this.#timer === undefined ? 0 : performance.now() - this.#last_heard_at
  }

  get port(): number {
    return this.#socket.address().port
  }

  start(remote: Remote): void {
    this.#remote = remote
    if (this.#timer) return
    this.#next_at = performance.now()
    this.#last_heard_at = this.#next_at
    this.#timer = setInterval(() => this.#tick(), PTIME_MS / 2)
  }

  /** Plays samples. Resolves at their end, or when something else replaces them. */
  play(samples: Int16Array, options: { loop?: boolean } = {}): Promise<void> {
    this.#leaveMode()
    const bytes = encode(this.#remote?.law ?? 'PCMU', samples)
    return new Promise(done => {
      this.#mode = { kind: 'play', bytes, at: 0, loop: options.loop ?? false, done }
    })
  }

  /** Resolves when the far end is first heard. Packets with silence do not count: they flow while a document loads. */
  spokenTo(): Promise<void> {
    return this.#sound
  }

  echo(): void {
    this.#leaveMode()
    this.#heard = []
    this.#mode = { kind: 'echo' }
  }

  /** Sends keys by RFC 4733, 100 ms on and 100 ms off; nothing if the far end did not offer telephone-event. */
  sendDigits(digits: string): void {
    if (this.#remote?.event_payload_type != null) this.#digits.push(...digits)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#leaveMode()
    this.#socket.close()
  }

  #leaveMode(): void {
    if (this.#mode.kind === 'play') this.#mode.done()
    this.#mode = { kind: 'silence' }
  }

  #received(packet: Buffer): void {
    this.#last_heard_at = performance.now()
    const remote = this.#remote
    if (!remote || packet.length < 12 || (packet[0] ?? 0) >> 6 !== 2) return
    if (((packet[1] ?? 0) & 0x7f) !== remote.payload_type) return
    if (this.#soundHeard && hasSound(remote.law, packet.subarray(12))) {
      this.#soundHeard()
      this.#soundHeard = null
    }
    if (this.#mode.kind !== 'echo') return
    this.#heard.push(packet.subarray(12))
    if (this.#heard.length > 10) this.#heard.shift()
  }

  /** Sends all packets that are due: timers of a busy machine fire late, but the far end expects an even rate. */
  #tick(): void {
    for (let sent = 0; performance.now() >= this.#next_at && sent < 10; sent++) {
      this.#next_at += PTIME_MS
      this.#sendOne()
    }
  }

  #sendOne(): void {
    const remote = this.#remote
    if (!remote) return
    if (this.#digits.length > 0 && remote.event_payload_type !== null) this.#sendEvent(remote.event_payload_type)
    else this.#send(remote.payload_type, this.#nextPayload(remote.law), false, this.#timestamp)
    this.#timestamp = (this.#timestamp + SAMPLES) >>> 0
  }

  #nextPayload(law: Law): Buffer {
    const mode = this.#mode
    const quiet = Buffer.alloc(SAMPLES, SILENCE_BYTE[law])
    if (mode.kind === 'echo') return this.#heard.shift() ?? quiet
    if (mode.kind !== 'play') return quiet
    mode.bytes.copy(quiet, 0, mode.at, mode.at + SAMPLES)
    mode.at += SAMPLES
    if (mode.at >= mode.bytes.length) {
      if (mode.loop) mode.at = 0
      else this.#leaveMode()
    }
    return quiet
  }

  /** RFC 4733 §2.5: all packets of an event carry the timestamp of its start. The last three have the end bit. */
  #sendEvent(payload_type: number): void {
    const count = this.#digit_packets++
    if (count === 0) this.#digit_timestamp = this.#timestamp
    const last = count >= DTMF_ON_PACKETS
    if (count < DTMF_ON_PACKETS + 3) {
      const payload = Buffer.alloc(4)
      payload[0] = DTMF_EVENTS.indexOf((this.#digits[0] ?? '0').toUpperCase())
      payload[1] = (last ? 0x80 : 0) | 10
      payload.writeUInt16BE(Math.min(count + 1, DTMF_ON_PACKETS) * SAMPLES, 2)
      this.#send(payload_type, payload, count === 0, this.#digit_timestamp)
    }
    if (count + 1 < DTMF_ON_PACKETS + DTMF_OFF_PACKETS) return
    this.#digits.shift()
    this.#digit_packets = 0
  }

  #send(payload_type: number, payload: Buffer, marker: boolean, timestamp: number): void {
    const remote = this.#remote
    if (!remote) return
    const header = Buffer.alloc(12)
    header[0] = 0x80
    header[1] = (marker ? 0x80 : 0) | payload_type
    header.writeUInt16BE(this.#sequence, 2)
    header.writeUInt32BE(timestamp, 4)
    header.writeUInt32BE(this.#ssrc, 8)
    this.#sequence = (this.#sequence + 1) & 0xffff
    this.#socket.send(Buffer.concat([header, payload]), remote.port, remote.address)
  }
}
