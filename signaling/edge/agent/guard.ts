import type { Clock } from '../../../core/runtime/clock.ts'

// Budget of each source address (design §4, threats §2.4, §3): who sends garbage or fails to identify itself again and
// again is dropped in silence for a while. Configured sources never are.
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
}

export interface BlockedSource {
  readonly host: string
  readonly until: number
  readonly dropped: number
  readonly reason: 'failures' | 'malformed' | 'operator'
}

const CHALLENGE_MS = 5_000
const MAX_CHALLENGES = 64

/** A final answer to a request outside dialogs. */
export interface AnsweredRequest {
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
  malformed: number
  malformed_since: number
  blocked_until: number
  dropped: number
  reason: BlockedSource['reason']
}

const MAX_SOURCES = 20_000

export class SourceGuard {
  readonly #options: GuardOptions
  /** In order of the last mark against a source. */
  readonly #sources = new Map<string, Record>()
  /** Sources that are blocked at this moment: nearly always empty, and asked for every packet. */
  readonly #blocked = new Map<string, Record>()
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

  /** A final answer was given to a request outside dialogs. */
  answered(host: string, answer: AnsweredRequest): void {
    const { status } = answer
    const challenge = status === 401 || status === 407
    if (!challenge && status !== 403) {
      // Whoever gets further than this has identified himself, however his call ends.
      this.#sources.delete(host)
      return
    }
    if (this.#options.isConfiguredSource(host)) return
    const now = this.#options.clock.monotonic_ms()
    const record = this.#record(host, now)
    let failures = challenge && (!answer.credentials || answer.stale) ? 0 : 1
    if (failures === 0) {
      record.challenges ??= new Map()
      record.challenges.set(answer.call_id, now)
    }
    for (const [call_id, since] of record.challenges ?? []) {
      const full = (record.challenges?.size ?? 0) > MAX_CHALLENGES
      if (!full && now - since < CHALLENGE_MS) break
      record.challenges?.delete(call_id)
      failures++
    }
    if (now - record.failures_since > this.#options.window_ms) {
      record.failures = 0
      record.failures_since = now
    }
    record.failures += failures
    if (record.failures >= this.#options.failures) this.#block(host, record, 'failures')
  }

  /** A message that could not be read. */
  malformed(host: string): void {
    const now = this.#options.clock.monotonic_ms()
    const record = this.#record(host, now)
    if (now - record.malformed_since > 1_000) {
      record.malformed = 0
      record.malformed_since = now
    }
    record.malformed++
    if (record.malformed >= this.#options.malformed_per_second && !this.#options.isConfiguredSource(host)) {
      this.#block(host, record, 'malformed')
    }
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
    return [...this.#blocked].map(([host, r]) => ({
      host,
      until: r.blocked_until,
      dropped: r.dropped,
      reason: r.reason,
    }))
  }

  #block(host: string, record: Record, reason: BlockedSource['reason'], duration_ms = this.#options.block_ms): void {
    record.blocked_until = this.#options.clock.monotonic_ms() + duration_ms
    record.reason = reason
    this.#blocked.set(host, record)
    this.blocks++
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
      malformed: 0,
      malformed_since: now,
      blocked_until: 0,
      dropped: 0,
      reason: 'failures',
    }
    this.#sources.set(host, record)
    return record
  }
}
