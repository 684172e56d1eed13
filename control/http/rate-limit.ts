import { boundedMap } from '../../core/domain/bounded-map.ts'

/** A token bucket that holds `burst` requests and refills at `per_second`. */
export interface RateLimit {
  readonly burst: number
  readonly per_second: number
}

export interface RateVerdict {
  readonly allowed: boolean
  readonly headers: Readonly<Record<string, string>>
}

export interface RateLimiter {
  /** Takes one token of `key`. `now_ms` is monotonic; `epoch_ms` is the base of the X-RateLimit-Reset header. */
  take(key: string, now_ms: number, epoch_ms: number): RateVerdict | Promise<RateVerdict>
  /** Refills the bucket of `key`. */
  forget(key: string): void
}

/** A limiter that counts in the memory of this process, and answers at once. */
interface OwnLimiter extends RateLimiter {
  take(key: string, now_ms: number, epoch_ms: number): RateVerdict
}

const MAX_KEYS = 20_000

/** Keeps a token bucket for each key in memory; a restart resets them. The least recently used key is evicted first. */
export function createRateLimiter({ burst, per_second }: RateLimit): OwnLimiter {
  const buckets = boundedMap<string, { readonly tokens: number; readonly at_ms: number }>(MAX_KEYS)
  return {
    forget: key => {
      buckets.delete(key)
    },
    take(key, now_ms, epoch_ms) {
      const known = buckets.get(key)
      const tokens = known ? Math.min(burst, known.tokens + ((now_ms - known.at_ms) / 1000) * per_second) : burst
      const allowed = tokens >= 1
      const left = allowed ? tokens - 1 : tokens
      buckets.set(key, { tokens: left, at_ms: now_ms })
      const full_in_seconds = (burst - left) / per_second
      const wait_s = (1 - left) / per_second
      return { allowed, headers: headersOf({ burst, left, full_in_seconds, epoch_ms, allowed, wait_s }) }
    },
  }
}

/** What a client is told of its limit. */
export function headersOf(limit: {
  readonly burst: number
  readonly left: number
  readonly full_in_seconds: number
  readonly epoch_ms: number
  readonly allowed: boolean
  /** When the next request is allowed. */
  readonly wait_s: number
}): Record<string, string> {
  const { burst, left, full_in_seconds, epoch_ms, allowed, wait_s } = limit
  const headers: Record<string, string> = {
    'X-RateLimit-Limit': String(burst),
    'X-RateLimit-Remaining': String(Math.floor(left)),
    'X-RateLimit-Reset': String(Math.ceil(epoch_ms / 1000 + full_in_seconds)),
  }
  if (!allowed) headers['Retry-After'] = String(Math.max(1, Math.ceil(wait_s)))
  return headers
}
