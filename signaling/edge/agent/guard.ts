import { boundedMap } from '../../../core/domain/bounded-map.ts'
import { hostGroup } from '../../../core/domain/identity/index.ts'
import type { Clock } from '../../../core/runtime/clock.ts'
import type { GuardedSource } from '../../../core/runtime/edge-link.ts'
import { isReliable, type Protocol, type Received } from '../transport/types.ts'

// Decides which sources may send requests (design §4, threats §2.4, §3, decision 0111).
//
// The source of a datagram can be spoofed. So a failure counts against an address only with proof that its sender is
// there: a connection, or credentials for a nonce that we issued to that address and transport. A block applies to one
// transport and to requests that begin something. It spares dialogs and flows that recently proved a password. A
// stranger's requests are limited per second. Limits and blocks treat an IPv6 address as its /64, because one machine
// may use all of it. A proof holds only for the exact address.
//
// The guards of an installation's edges tell each other whom they block, and which flows at that address have proved a
// password to them. What shuts a stranger out everywhere spares a customer behind the same address.

interface GuardOptions {
  readonly clock: Clock
  /** Sources that are never dropped. */
  readonly isConfiguredSource: (host: string) => boolean
  /** The number of failures within the window that causes a block. */
  readonly failures: number
  readonly window_ms: number
  readonly block_ms: number
  /** Malformed messages of a source that are answered per second. */
  readonly malformed_per_second: number
  /** Out-of-dialog requests that a stranger may send per second. Further ones are dropped. */
  readonly requests_per_second: number
  /** Called once for each block. */
  readonly blocked?: ((source: BlockedSource) => void) | undefined
  /** Called with each failure that counts, and with a password that makes up for earlier ones. */
  readonly tried?: ((source: GuardedSource, failed: boolean) => void) | undefined
  /** Tells the guards of the other edges. */
  readonly tell?: ((word: GuardWord) => void) | undefined
}

/** A source or flow that has proved a password, and for how long that counts. */
type Proof = readonly [key: string, ms: number]

/** What the guard of an edge tells those of the others. */
export type GuardWord =
  | { readonly kind: 'blocked'; readonly source: GuardedSource; readonly ms: number; readonly proofs: readonly Proof[] }
  /** The answer of those that know more flows of a source that was blocked. */
  | { readonly kind: 'proved'; readonly proofs: readonly Proof[] }

/** Whether a word of another edge is one of this version. A newer edge may say more. */
export function isGuardWord(value: unknown): value is GuardWord {
  const { kind, source, ms, proofs } = (value ?? {}) as Partial<Extract<GuardWord, { kind: 'blocked' }>>
  const all_proofs =
    Array.isArray(proofs) && proofs.every(proof => typeof proof?.[0] === 'string' && Number.isFinite(proof[1]))
  if (!all_proofs) return false
  if ((kind as string) === 'proved') return true
  return kind === 'blocked' && typeof source?.host === 'string' && PROTOCOLS.has(source.protocol) && Number.isFinite(ms)
}

const PROTOCOLS: ReadonlySet<unknown> = new Set<Protocol>(['udp', 'tcp', 'tls', 'ws', 'wss'])

export interface BlockedSource {
  readonly host: string
  /** 'all' for a block by an operator. */
  readonly protocol: Protocol | 'all'
  readonly until: number
  readonly dropped: number
  /** `elsewhere`: the guard of another machine's edge says so. */
  readonly reason: 'failures' | 'malformed' | 'operator' | 'elsewhere'
}

/** How long a password proves a source and a flow. Registrations last at most two hours. */
const PROVEN_MS = 2 * 3_600_000

/** The source of a message. */
export type From = Pick<Received, 'protocol' | 'source'>

/** A final answer to an out-of-dialog request. */
export interface AnsweredRequest {
  readonly method: string
  readonly status: number
  /** The request carried Authorization or Proxy-Authorization. */
  readonly credentials: boolean
  /** Whether the credentials use a nonce that we issued to their source and transport. Called only for refusals. */
  readonly ours: () => boolean
  /** Whether the challenge says that only the nonce was stale (RFC 7616 §3.3). Called only for refusals. */
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
/** The most proofs of one source that a word to the other edges holds. */
const MAX_PROOFS = 100
/** Words to other edges in a second: each costs a look at all proofs. Edges count what they are not told. */
const MAX_TOLD = 10

/** Counts the events of each source in the current second. The whole table is dropped after a second. */
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
    // The network must handle a flood from more addresses than this.
    if (count > 1 || this.#counts.size < MAX_SOURCES) this.#counts.set(source, count)
    return count
  }
}

export class SourceGuard {
  readonly #options: GuardOptions
  readonly #failures = boundedMap<string, { count: number; since: number }>(MAX_SOURCES)
  /** The sources that are blocked now. Nearly always empty. */
  readonly #blocks = boundedMap<string, Block>(MAX_SOURCES)
  /** Sources and flows that recently proved a password, with the monotonic time at which the proof expires. */
  readonly #proven = boundedMap<string, number>(MAX_SOURCES)
  readonly #requests: PerSecond
  readonly #malformed: PerSecond
  readonly #told: PerSecond
  dropped = 0
  blocks = 0

  constructor(options: GuardOptions) {
    this.#options = options
    this.#requests = new PerSecond(options.clock)
    this.#malformed = new PerSecond(options.clock)
    this.#told = new PerSecond(options.clock)
  }

  get blocked_count(): number {
    return this.#blocks.size
  }

  /** Reports whether to drop everything from a host unread, because an operator blocked it. */
  silences(host: string): boolean {
    return this.#blocks.size > 0 && this.#drops('all', host)
  }

  /** Reports whether to refuse a new connection of a host. */
  refuses(host: string, protocol: Protocol): boolean {
    return this.#blocks.size > 0 && !this.#isProven(sourceOf(protocol, host)) && this.#drops(protocol, host)
  }

  /** Reports whether to process an out-of-dialog request. */
  admits(from: From): boolean {
    const { protocol, source } = from
    if (this.#blocks.size > 0 && !this.#isProven(flowOf(from)) && this.#drops(protocol, source.host)) return false
    if (this.#trusted(from)) return true
    if (this.#requests.count(hostGroup(source.host)) <= this.#options.requests_per_second) return true
    this.dropped++
    return false
  }

  /** Reports whether valid credentials arrived over this flow recently. */
  hasProved(from: From): boolean {
    return this.#isProven(flowOf(from))
  }

  /** Records that valid credentials arrived over this flow. */
  proved(from: From): void {
    const until = this.#options.clock.monotonic_ms() + PROVEN_MS
    const source = sourceOf(from.protocol, from.source.host)
    const group = groupOn(from.protocol, from.source.host)
    if (this.#failures.delete(group)) this.#options.tried?.(sourceAt(from), false)
    for (const key of [source, flowOf(from)]) {
      this.#proven.set(key, until)
    }
  }

  /** Records the final answer to an out-of-dialog request. */
  answered(from: From, { method, status, credentials, ours, stale }: AnsweredRequest): void {
    const refused = status === 401 || status === 403 || status === 407
    if (!refused) {
      // OPTIONS of any scanner are answered, so their success proves nothing.
      const identifies = (method === 'INVITE' || method === 'REGISTER') && status < 300
      if (identifies && credentials) this.proved(from)
      return
    }
    if (!ours() || stale() || this.#options.isConfiguredSource(from.source.host)) return
    // This source proved a password before. The call is refused because of its destination or its cost.
    if (status === 403 && method === 'INVITE' && this.#trusted(from)) return
    this.#failed(from)
  }

  /** Records a malformed message. Returns false when the source has had enough answers this second. */
  malformed(from: From): boolean {
    const { protocol, source } = from
    const within = this.#malformed.count(groupOn(protocol, source.host)) < this.#options.malformed_per_second
    if (!within && isReliable(protocol) && !this.#trusted(from)) this.#block(source.host, protocol, 'malformed')
    return within
  }

  /** Blocks a host on behalf of an operator. */
  block(host: string, duration_ms: number): void {
    this.#block(host, 'all', 'operator', duration_ms)
  }

  /** Blocks a source that has failed too often at the edges of all machines together. */
  shut({ host, protocol }: GuardedSource, ms: number): void {
    if (!this.#options.isConfiguredSource(host)) this.#block(host, protocol, 'failures', ms)
  }

  /** Takes what the guard of another edge says. */
  hear(word: GuardWord): void {
    const now_ms = this.#options.clock.monotonic_ms()
    for (const [key, ms] of word.proofs.slice(0, MAX_PROOFS)) {
      const until = now_ms + Math.min(ms, PROVEN_MS)
      if ((this.#proven.get(key) ?? 0) < until) this.#proven.set(key, until)
    }
    if (word.kind === 'proved' || this.#options.isConfiguredSource(word.source.host)) return
    const { host, protocol } = word.source
    this.#block(host, protocol, 'elsewhere', Math.min(word.ms, this.#options.block_ms))
    const known = new Set(word.proofs.map(([key]) => key))
    this.#tell(() => {
      const proofs = this.#proofsOf(word.source).filter(([key]) => !known.has(key))
      return proofs.length > 0 && { kind: 'proved', proofs }
    })
  }

  unblock(host: string): boolean {
    let found = false
    for (const [key, block] of this.#blocks)
      if (hostGroup(block.host) === hostGroup(host)) found = this.#blocks.delete(key) || found
    return found
  }

  list(): BlockedSource[] {
    return [...this.#blocks.values()].map(block => ({ ...block }))
  }

  #tell(make: () => GuardWord | false): void {
    const { tell } = this.#options
    if (!tell || this.#told.count('') > MAX_TOLD) return
    const word = make()
    if (word) tell(word)
  }

  #proofsOf({ protocol, host }: GuardedSource): Proof[] {
    const group = hostGroup(host)
    const exact = `${protocol}|${host}`
    const inGroup = (key: string): boolean => hostGroup(key.split('|')[1] ?? '') === group
    const now_ms = this.#options.clock.monotonic_ms()
    const proofs: Proof[] = []
    for (const [key, until] of this.#proven) {
      const of_source =
        key === exact ||
        key.startsWith(`${exact}|`) ||
        (key.startsWith(`${protocol}|`) && key.includes(':') && inGroup(key))
      if (!of_source || until <= now_ms) continue
      proofs.push([key, until - now_ms])
      if (proofs.length === MAX_PROOFS) break
    }
    return proofs
  }

  #failed({ protocol, source }: From): void {
    this.#options.tried?.(sourceAt({ protocol, source }), true)
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
    // A stranger whose trunk has been configured meanwhile must not wait for its block to end. Its neighbours in an
    // IPv6 network stay blocked.
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
    if (protocol === 'all' || reason === 'elsewhere') return
    const source = { protocol, host }
    this.#tell(() => ({ kind: 'blocked', source, ms, proofs: this.#proofsOf(source) }))
  }
}

const sourceAt = ({ protocol, source }: From): GuardedSource => ({ protocol, host: source.host })
const groupOn = (protocol: Protocol | 'all', host: string): string => `${protocol}|${hostGroup(host)}`
const sourceOf = (protocol: Protocol, host: string): string => `${protocol}|${host}`
const flowOf = ({ protocol, source }: From): string => `${protocol}|${source.host}|${source.port}`
