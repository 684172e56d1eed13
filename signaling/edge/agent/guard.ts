import { LRUCache } from 'lru-cache'
import { hostGroup } from '../../../core/domain/identity/index.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import { isReliable, type Protocol, type Received } from '../transport/types.ts'

// Who may send what (design §4, threats §2.4, §3, decisions 0109, 0111). Anybody can put a peer's address on a
// datagram, so nothing counts against an address unless it proves that its sender is there: credentials for a nonce
// that we issued to that address and transport, or a connection. Blocks are of one transport, and touch only requests
// that begin something: neither dialogs nor flows that lately proved a password. A stranger's requests are few each
// second. An IPv6 address counts as its /64, which one machine may use as a whole; what it proved is its own alone.

interface GuardOptions {
  readonly clock: Clock
  /** Sources that are never dropped. */
  readonly isConfiguredSource: (host: string) => boolean
  /** Failures in the window that lead to a block. */
  readonly failures: number
  readonly window_ms: number
  readonly block_ms: number
  /** Malformed messages of a source that are answered in a second. */
  readonly malformed_per_second: number
  /** Requests for which there is no dialog that a stranger may send in a second; further ones are dropped. */
  readonly requests_per_second: number
  /** Told once for each block. */
  readonly blocked?: ((source: BlockedSource) => void) | undefined
}

export interface BlockedSource {
  readonly host: string
  /** An operator blocks a host on all of them. */
  readonly protocol: Protocol | 'all'
  readonly until: number
  readonly dropped: number
  readonly reason: 'failures' | 'malformed' | 'operator'
}

/** How long a source, or a flow, that proved a password is no stranger; registrations last two hours at most. */
const PROVEN_MS = 2 * 3_600_000

/** Where something came from. */
export type From = Pick<Received, 'protocol' | 'source'>

/** A final answer to a request outside dialogs. */
export interface AnsweredRequest {
  readonly method: string
  readonly status: number
  /** The request carried Authorization or Proxy-Authorization. */
  readonly credentials: boolean
  /** They are for a nonce that we issued to the address and transport that they came from. Asked of refusals alone. */
  readonly ours: () => boolean
  /** The challenge says that only the nonce was old (RFC 7616 §3.3). Asked of refusals alone. */
  readonly stale: () => boolean
}

type Block = {
  host: string
  protocol: Protocol | 'all'
  until: number
  dropped: number
  reason: BlockedSource['reason']
}

const MAX_SOURCES = 20_000

/** Events of each source in this second. The table of a second is forgotten as a whole. */
class PerSecond {
  readonly #clock: Clock
  #counts = new Map<string, number>()
  #since = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  count(source: string): number {
    const now = this.#clock.monotonic_ms()
    if (now - this.#since > 1_000) {
      this.#since = now
      this.#counts = new Map()
    }
    const count = (this.#counts.get(source) ?? 0) + 1
    // A flood from more addresses than that is the network's business.
    if (count > 1 || this.#counts.size < MAX_SOURCES) this.#counts.set(source, count)
    return count
  }
}

export class SourceGuard {
  readonly #options: GuardOptions
  readonly #failures = new LRUCache<string, { count: number; since: number }>({ max: MAX_SOURCES })
  /** Sources that are blocked at this moment: nearly always empty. */
  readonly #blocks = new LRUCache<string, Block>({ max: MAX_SOURCES })
  /** Sources and flows that proved a password lately, and until when that counts. */
  readonly #proven = new LRUCache<string, number>({ max: MAX_SOURCES })
  readonly #requests: PerSecond
  readonly #malformed: PerSecond
  dropped = 0
  blocks = 0

  constructor(options: GuardOptions) {
    this.#options = options
    this.#requests = new PerSecond(options.clock)
    this.#malformed = new PerSecond(options.clock)
  }

  get blocked_count(): number {
    return this.#blocks.size
  }

  /** Whether all that a host sends is to be dropped unread: an operator wants it. */
  silences(host: string): boolean {
    return this.#blocks.size > 0 && this.#drops('all', host)
  }

  /** Whether a new connection of a host is refused. */
  refuses(host: string, protocol: Protocol): boolean {
    return this.#blocks.size > 0 && !this.#isProven(sourceOf(protocol, host)) && this.#drops(protocol, host)
  }

  /** Whether a request for which there is no dialog may be looked at. */
  admits(from: From): boolean {
    const { protocol, source } = from
    if (this.#blocks.size > 0 && !this.#isProven(flowOf(from)) && this.#drops(protocol, source.host)) return false
    if (this.#trusted(from)) return true
    if (this.#requests.count(groupOf(source.host)) <= this.#options.requests_per_second) return true
    this.dropped++
    return false
  }

  /** Whether good credentials came by this flow lately. */
  hasProved(from: From): boolean {
    return this.#isProven(flowOf(from))
  }

  /** Good credentials came by this flow. */
  proved(from: From): void {
    const until = this.#options.clock.monotonic_ms() + PROVEN_MS
    const source = sourceOf(from.protocol, from.source.host)
    this.#failures.delete(groupOn(from.protocol, from.source.host))
    for (const key of [source, flowOf(from)]) {
      this.#proven.set(key, until)
    }
  }

  /** A final answer was given to a request outside dialogs. */
  answered(from: From, { method, status, credentials, ours, stale }: AnsweredRequest): void {
    const refused = status === 401 || status === 403 || status === 407
    if (!refused) {
      // Any scanner's OPTIONS is answered, so that says nothing.
      const identifies = (method === 'INVITE' || method === 'REGISTER') && status < 300
      if (identifies && credentials) this.proved(from)
      return
    }
    if (!ours() || stale() || this.#options.isConfiguredSource(from.source.host)) return
    // Its calls were let through with a password before: this one is refused for where it goes, or for what it costs.
    if (status === 403 && method === 'INVITE' && this.#trusted(from)) return
    this.#failed(from)
  }

  /** A message that could not be read. False when it should not be answered either: enough was said this second. */
  malformed(from: From): boolean {
    const { protocol, source } = from
    const within = this.#malformed.count(groupOn(protocol, source.host)) < this.#options.malformed_per_second
    if (!within && isReliable(protocol) && !this.#trusted(from)) this.#block(source.host, protocol, 'malformed')
    return within
  }

  /** Blocks a host on an operator's account. */
  block(host: string, duration_ms: number): void {
    this.#block(host, 'all', 'operator', duration_ms)
  }

  unblock(host: string): boolean {
    let found = false
    for (const [key, block] of this.#blocks)
      if (groupOf(block.host) === groupOf(host)) found = this.#blocks.delete(key) || found
    return found
  }

  list(): BlockedSource[] {
    return [...this.#blocks.values()].map(block => ({ ...block }))
  }

  #failed({ protocol, source }: From): void {
    const { clock, window_ms, failures } = this.#options
    const now = clock.monotonic_ms()
    const key = groupOn(protocol, source.host)
    const known = this.#failures.get(key)
    const record = known && now - known.since <= window_ms ? known : { count: 0, since: now }
    record.count++
    this.#failures.set(key, record)
    if (record.count < failures) return
    this.#failures.delete(key)
    this.#block(source.host, protocol, 'failures')
  }

  #drops(protocol: Protocol | 'all', host: string): boolean {
    const key = groupOn(protocol, host)
    const block = this.#blocks.get(key)
    if (!block) return false
    const { isConfiguredSource, clock } = this.#options
    // A stranger that became a peer meanwhile (its trunk was made) must not wait for the block to end. Its neighbours
    // in an IPv6 network stay blocked.
    const configured = isConfiguredSource(host)
    if (block.until < clock.monotonic_ms() || (configured && block.host === host)) this.#blocks.delete(key)
    if (configured || !this.#blocks.has(key)) return false
    this.dropped++
    block.dropped++
    return true
  }

  #trusted({ protocol, source }: From): boolean {
    return this.#options.isConfiguredSource(source.host) || this.#isProven(sourceOf(protocol, source.host))
  }

  #isProven(key: string): boolean {
    return (this.#proven.get(key) ?? Number.NEGATIVE_INFINITY) > this.#options.clock.monotonic_ms()
  }

  #block(host: string, protocol: Protocol | 'all', reason: Block['reason'], ms = this.#options.block_ms): void {
    const key = groupOn(protocol, host)
    if (this.#blocks.has(key) && reason !== 'operator') return
    const block: Block = { host, protocol, until: this.#options.clock.monotonic_ms() + ms, dropped: 0, reason }
    this.#blocks.set(key, block)
    this.blocks++
    this.#options.blocked?.({ ...block })
  }
}

const groupOf = (host: string): string => (host.includes(':') ? hostGroup(host) : host)
const groupOn = (protocol: Protocol | 'all', host: string): string => `${protocol}|${groupOf(host)}`
const sourceOf = (protocol: Protocol, host: string): string => `${protocol}|${host}`
const flowOf = ({ protocol, source }: From): string => `${protocol}|${source.host}|${source.port}`
