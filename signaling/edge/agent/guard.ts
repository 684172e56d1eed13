import type { Clock } from '../../../core/runtime/clock.ts'

// Budget of each source address (design §4, threats §2.4, §3): who sends garbage or fails to identify itself again and
// again is dropped in silence for a while. Configured sources never are. A stranger's requests are few each second, so
// that a flood of them costs an application nothing; a source that lately proved a password is no stranger.
//
// A challenge alone is no failure, for every digest user is challenged first: it becomes one when no credentials
// follow in time. Credentials that are refused, and 403, are failures at once.

export interface GuardOptions {
  readonly clock: Clock
  /** Sources that are never dropped. */
  readonly isConfiguredSource: (host: string) => boolean
  /** Failures in the window that lead to a block. */
  readonly failures: number
  readonly window_ms: number
  readonly block_ms: number
  /** Malformed messages that a source may send in a second. */
  readonly malformed_per_second: number
  /** Requests for which there is no dialog that a stranger may send in a second; further ones are dropped. */
  readonly requests_per_second: number
  /** Told once for each block. */
  readonly blocked?: ((source: BlockedSource) => void) | undefined
}

export interface BlockedSource {
  readonly host: string
  readonly until: number
  readonly dropped: number
  readonly reason: 'failures' | 'malformed' | 'operator'
}

const CHALLENGE_MS = 5_000
const MAX_CHALLENGES = 64
/** How long a source that proved a password is no stranger. */
const KNOWN_MS = 3_600_000

/** A final answer to a request outside dialogs. */
export interface AnsweredRequest {
  readonly method: string
  readonly status: number
  readonly call_id: string
  /** The request carried Authorization or Proxy-Authorization. */
  readonly credentials: boolean
  /** The challenge says that only the nonce was old (RFC 7616 §3.3). */
  readonly stale: boolean
}

type Record = {
  /** Challenges that wait for credentials: Call-ID, and since when. */
  challenges: Map<string, number> | undefined
  failures: number
  failures_since: number
  readonly malformed: Rate
  readonly requests: Rate
  blocked_until: number
  dropped: number
  reason: BlockedSource['reason']
}

/** Events of the second that began at `since`. */
type Rate = { since: number; count: number }

function counted(rate: Rate, now: number): number {
  if (now - rate.since > 1_000) {
    rate.since = now
    rate.count = 0
  }
  return ++rate.count
}

const MAX_SOURCES = 20_000

export class SourceGuard {
  readonly #options: GuardOptions
  /** In order of the last mark against a source. */
  readonly #sources = new Map<string, Record>()
  /** Sources that are blocked at this moment: nearly always empty, and asked for every packet. */
  readonly #blocked = new Map<string, Record>()
  /** Sources that proved a password lately, and until when that counts. */
  readonly #known = new Map<string, number>()
  dropped = 0
  blocks = 0

  constructor(options: GuardOptions) {
    this.#options = options
  }

  get blockedCount(): number {
    return this.#blocked.size
  }

  /** Whether a packet of this source is to be dropped unread. */
  drops(host: string): boolean {
    if (this.#blocked.size === 0) return false
    const record = this.#blocked.get(host)
    if (!record) return false
    // A stranger that became a peer meanwhile (its trunk was made) must not wait for the block to end.
    const pardoned = this.#options.isConfiguredSource(host)
    if (pardoned || record.blocked_until < this.#options.clock.monotonic_ms()) {
      this.#blocked.delete(host)
      this.#sources.delete(host)
      return false
    }
    this.dropped++
    record.dropped++
    return true
  }

  /** Credentials arrived in a new request: its challenge was answered. */
  identified(host: string, call_id: string): void {
    this.#sources.get(host)?.challenges?.delete(call_id)
  }

  /** Whether a request for which there is no dialog may be looked at. */
  admits(host: string): boolean {
    if (this.#trusted(host)) return true
    const now = this.#options.clock.monotonic_ms()
    if (counted(this.#record(host, now).requests, now) <= this.#options.requests_per_second) return true
    this.dropped++
    return false
  }

  /** A final answer was given to a request outside dialogs. */
  answered(host: string, answer: AnsweredRequest): void {
    const { status } = answer
    const challenge = status === 401 || status === 407
    if (!challenge && status !== 403) {
      // Whose call or registration gets further than this has identified himself, however it ends. Any scanner's
      // OPTIONS is answered, so that says nothing.
      const identifies = answer.method === 'INVITE' || (answer.method === 'REGISTER' && status < 300)
      if (identifies) this.#sources.delete(host)
      if (identifies && answer.credentials && status < 300) this.#remember(host)
      return
    }
    if (this.#options.isConfiguredSource(host)) return
    // Its calls were let through with a password before: this one is refused for where it goes, or for what it costs.
    if (status === 403 && answer.method === 'INVITE' && answer.credentials && this.#trusted(host)) return
    const now = this.#options.clock.monotonic_ms()
    const record = this.#record(host, now)
    const unanswered = this.#unanswered(record, now)
    // A busy address that proved a password may be many telephones behind one NAT.
    const failures = this.#refused(record, answer, now) + (this.#trusted(host) ? 0 : unanswered)
    if (now - record.failures_since > this.#options.window_ms) {
      record.failures = 0
      record.failures_since = now
    }
    record.failures += failures
    if (record.failures >= this.#options.failures) this.#block(host, record, 'failures')
  }

  /** A message that could not be read. False when it should not be answered either: enough was said this second. */
  malformed(host: string): boolean {
    const now = this.#options.clock.monotonic_ms()
    const record = this.#record(host, now)
    const over = counted(record.malformed, now) >= this.#options.malformed_per_second
    // Anybody can put a peer's address on a datagram: that must not silence the peer.
    if (over && !this.#trusted(host)) this.#block(host, record, 'malformed')
    return !over
  }

  /** Blocks a source on an operator's account. */
  block(host: string, duration_ms: number): void {
    const record = this.#record(host, this.#options.clock.monotonic_ms())
    this.#block(host, record, 'operator', duration_ms)
  }

  unblock(host: string): boolean {
    this.#sources.delete(host)
    return this.#blocked.delete(host)
  }

  list(): BlockedSource[] {
    return [...this.#blocked].map(([host, record]) => shown(host, record))
  }

  /** A challenge that was not answered yet is kept; anything else here is a failure. */
  #refused(record: Record, answer: AnsweredRequest, now: number): number {
    if (answer.status === 403 || (answer.credentials && !answer.stale)) return 1
    record.challenges ??= new Map()
    record.challenges.set(answer.call_id, now)
    return 0
  }

  /** Challenges that no credentials followed in time. */
  #unanswered(record: Record, now: number): number {
    let failures = 0
    for (const [call_id, since] of record.challenges ?? []) {
      const full = (record.challenges?.size ?? 0) > MAX_CHALLENGES
      if (!full && now - since < CHALLENGE_MS) break
      record.challenges?.delete(call_id)
      failures++
    }
    return failures
  }

  #trusted(host: string): boolean {
    if (this.#options.isConfiguredSource(host)) return true
    return (this.#known.get(host) ?? 0) > this.#options.clock.monotonic_ms()
  }

  #remember(host: string): void {
    this.#known.delete(host)
    this.#known.set(host, this.#options.clock.monotonic_ms() + KNOWN_MS)
    if (this.#known.size > MAX_SOURCES) this.#known.delete(this.#known.keys().next().value ?? '')
  }

  #block(host: string, record: Record, reason: BlockedSource['reason'], duration_ms = this.#options.block_ms): void {
    record.blocked_until = this.#options.clock.monotonic_ms() + duration_ms
    record.reason = reason
    this.#blocked.set(host, record)
    this.blocks++
    this.#options.blocked?.(shown(host, record))
  }

  #record(host: string, now: number): Record {
    const found = this.#sources.get(host)
    if (found) {
      this.#sources.delete(host)
      this.#sources.set(host, found)
      return found
    }
    if (this.#sources.size >= MAX_SOURCES) {
      const oldest = this.#sources.keys().next().value
      if (oldest !== undefined) {
        this.#sources.delete(oldest)
        this.#blocked.delete(oldest)
      }
    }
    const record: Record = {
      challenges: undefined,
      failures: 0,
      failures_since: now,
      malformed: { since: now, count: 0 },
      requests: { since: now, count: 0 },
      blocked_until: 0,
      dropped: 0,
      reason: 'failures',
    }
    this.#sources.set(host, record)
    return record
  }
}

function shown(host: string, { blocked_until, dropped, reason }: Record): BlockedSource {
  return { host, until: blocked_until, dropped, reason }
}
