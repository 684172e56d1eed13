import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { boundedMap } from '../../core/domain/bounded-map.ts'
import { inOctets } from '../../core/domain/ladder/octets.ts'
import { redactSip } from '../../core/domain/ladder/redact.ts'
import { type Clock, systemClock, type Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import { type CallIds, callIds } from './ladder.ts'
import type { TracedMessage } from './transport/types.ts'

// Sends copies of SIP messages to a collector such as Homer, by HEP version 3 over UDP. Each leg of a call has its own
// Call-ID. All legs share one correlation id, the call's SID, so a message waits until the call has its row.

const FLUSH_MS = 250
/** How long a message waits for the SID of its call. Messages of refused strangers never get one. */
const PATIENCE_MS = 3_000
const MAX_WAITING = 5_000
const MAX_KNOWN = 20_000
const RETRY_MS = 5_000
/** Leaves room for the other chunks in a datagram of 65,507 bytes. */
const MAX_PAYLOAD = 65_000

interface HepOptions {
  readonly host: string
  readonly port: number
  /** Capture agent id. */
  readonly id: number
  readonly password: string | null
  /** Our addresses, one of each family. They replace the wildcard address of a socket. */
  readonly own_addresses: readonly string[]
}

export interface HepExporter {
  keep(message: TracedMessage): void
  readonly sent: number
  /** Messages that were not sent, because too many waited or the collector's name did not resolve. */
  readonly left_out: number
  close(): Promise<void>
}

/** Returns the SID of the call that each Call-ID belongs to. Call-IDs without a call are omitted. */
type FindCalls = (sip_call_ids: readonly string[]) => Promise<ReadonlyMap<string, string>>

interface Waiting {
  readonly message: TracedMessage
  readonly call_id: string
  readonly until_ms: number
}

export function exportHep(options: HepOptions, find: FindCalls, log: Log, clock: Clock = systemClock): HepExporter {
  const link = new CollectorLink(options, log, clock)
  const known = boundedMap<string, string>(MAX_KNOWN)
  const ids: CallIds = callIds()
  let waiting: Waiting[] = []
  let left_out = 0
  let busy = Promise.resolve()

  const flush = async (last: boolean): Promise<void> => {
    const batch = waiting
    waiting = []
    const asked = [...new Set(batch.map(one => one.call_id).filter(id => !known.has(id)))]
    if (asked.length > 0) {
      try {
        for (const [id, sid] of await find(asked)) known.set(id, sid)
      } catch (err) {
        log.warn({ err }, 'calls of SIP messages could not be looked up')
      }
    }
    const later: Waiting[] = []
    for (const one of batch) {
      const sid = known.get(one.call_id)
      if (sid === undefined && !last && clock.monotonic_ms() < one.until_ms) later.push(one)
      else if (!link.send(encodeHep(one.message, sid ?? one.call_id, options))) left_out++
    }
    waiting = [...later, ...waiting]
  }
  const timer: Timer = clock.every(FLUSH_MS, () => {
    busy = busy.then(() => flush(false))
  })
  return {
    keep(message) {
      const call_id = ids.of(message.text)?.call_id
      if (call_id === undefined) return
      if (waiting.length >= MAX_WAITING) left_out++
      else waiting.push({ message, call_id, until_ms: clock.monotonic_ms() + PATIENCE_MS })
    },
    get sent() {
      return link.sent
    },
    get left_out() {
      return left_out
    },
    async close() {
      timer.cancel()
      await busy
      await flush(true)
      await link.close()
    },
  }
}

/** The socket to the collector. Retries when the collector's name does not resolve. */
class CollectorLink {
  sent = 0
  readonly #options: HepOptions
  readonly #log: Log
  readonly #clock: Clock
  #socket: Socket | undefined
  #address = ''
  #retry: Timer | undefined
  #closed = false

  constructor(options: HepOptions, log: Log, clock: Clock) {
    this.#options = options
    this.#log = log
    this.#clock = clock
    void this.#open()
  }

  send(packet: Buffer): boolean {
    if (!this.#socket) return false
    // An unreachable collector must not affect calls, so send errors are ignored.
    this.#socket.send(packet, this.#options.port, this.#address, () => undefined)
    this.sent++
    return true
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#retry?.cancel()
    const socket = this.#socket
    this.#socket = undefined
    if (socket) await new Promise<void>(resolve => socket.close(resolve))
  }

  async #open(): Promise<void> {
    try {
      const { address, family } = await lookup(this.#options.host)
      if (this.#closed) return
      this.#address = address
      // The address is resolved above. This lookup keeps Node from resolving it for each datagram.
      this.#socket = createSocket({
        type: family === 6 ? 'udp6' : 'udp4',
        lookup: (host, _options, done) => done(null, host, family),
      })
      this.#socket.on('error', err => this.#log.warn({ err }, 'a message could not be sent to the HEP collector'))
      this.#socket.unref()
    } catch (err) {
      this.#log.warn({ err, host: this.#options.host }, 'the HEP collector has no address')
      if (!this.#closed) this.#retry = this.#clock.after(RETRY_MS, () => void this.#open())
    }
  }
}

// HEP version 3: a header and chunks.
//
//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-------------------------------+-------------------------------+
// |                        "HEP3"                                 |
// +-------------------------------+-------------------------------+
// |  length of all                |  chunk: vendor (0: general)   |
// +-------------------------------+-------------------------------+
// |  chunk: type                  |  chunk: length, these 6 too   |
// +-------------------------------+-------------------------------+
// |  value ...

const CHUNK = {
  family: 1,
  ip_protocol: 2,
  source_v4: 3,
  target_v4: 4,
  source_v6: 5,
  target_v6: 6,
  source_port: 7,
  target_port: 8,
  seconds: 9,
  microseconds: 10,
  kind: 11,
  agent: 12,
  password: 14,
  payload: 15,
  correlation: 17,
} as const
const SIP = 1
const UDP = 17
const TCP = 6
const INET = 2
const INET6 = 10

/** Encodes one SIP message as a HEP datagram. Secrets are redacted as for the ladder. */
export function encodeHep(
  message: TracedMessage,
  correlation_id: string,
  options: Pick<HepOptions, 'id' | 'password' | 'own_addresses'>,
): Buffer {
  const { host, port } = message.local
  const unbound = host === '0.0.0.0' || host === '::'
  const own = unbound ? options.own_addresses.find(one => isIPv6(one) === isIPv6(host)) : undefined
  const local = { host: own ?? host, port }
  const [source, target] = message.direction === 'in' ? [message.remote, local] : [local, message.remote]
  const v6 = isIPv6(source.host)
  const text = Buffer.from(inOctets(redactSip(message.text)), 'latin1').subarray(0, MAX_PAYLOAD)
  const chunks = [
    chunk(CHUNK.family, number(v6 ? INET6 : INET, 1)),
    chunk(CHUNK.ip_protocol, number(message.protocol === 'udp' ? UDP : TCP, 1)),
    chunk(v6 ? CHUNK.source_v6 : CHUNK.source_v4, addressBytes(source.host)),
    chunk(v6 ? CHUNK.target_v6 : CHUNK.target_v4, addressBytes(target.host)),
    chunk(CHUNK.source_port, number(source.port, 2)),
    chunk(CHUNK.target_port, number(target.port, 2)),
    chunk(CHUNK.seconds, number(Math.floor(message.at / 1000), 4)),
    chunk(CHUNK.microseconds, number(Math.floor((message.at % 1000) * 1000), 4)),
    chunk(CHUNK.kind, number(SIP, 1)),
    chunk(CHUNK.agent, number(options.id, 4)),
    ...(options.password === null ? [] : [chunk(CHUNK.password, Buffer.from(options.password))]),
    chunk(CHUNK.correlation, Buffer.from(correlation_id, 'latin1')),
    chunk(CHUNK.payload, text),
  ]
  const length = 6 + chunks.reduce((sum, one) => sum + one.length, 0)
  return Buffer.concat([Buffer.from('HEP3'), number(length, 2), ...chunks])
}

function chunk(type: number, value: Buffer): Buffer {
  return Buffer.concat([number(0, 2), number(type, 2), number(6 + value.length, 2), value])
}

function number(value: number, bytes: 1 | 2 | 4): Buffer {
  const out = Buffer.alloc(bytes)
  out.writeUIntBE(value, 0, bytes)
  return out
}

/** Returns the bytes of an IP literal in network order. */
function addressBytes(host: string): Buffer {
  if (!isIPv6(host)) return Buffer.from(host.split('.').map(Number))
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host.split('%')[0] ?? '')
  const pair = (high = '0', low = '0'): string => ((Number(high) << 8) | Number(low)).toString(16)
  const plain = dotted
    ? `${dotted[1]}${pair(dotted[2], dotted[3])}:${pair(dotted[4], dotted[5])}`
    : (host.split('%')[0] ?? '')
  const [head = '', tail] = plain.split('::')
  const before = groups(head)
  const after = tail === undefined ? [] : groups(tail)
  const all = [...before, ...new Array(8 - before.length - after.length).fill('0'), ...after]
  return Buffer.concat(all.map(group => number(Number.parseInt(group, 16), 2)))
}
