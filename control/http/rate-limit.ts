/** A bucket that holds `burst` requests and refills by `per_second`. */
export interface RateLimit {
  readonly burst: number
  readonly per_second: number
}

export interface RateVerdict {
  readonly allowed: boolean
  readonly headers: Readonly<Record<string, string>>
}

export interface RateLimiter {
  /** Takes one request of `key`; `now_ms` is monotonic, `epoch_ms` names the reset for people. */
  take(key: string, now_ms: number, epoch_ms: number): RateVerdict
  /** Takes back what was taken of `key`. */
  forget(key: string): void
}

const MAX_KEYS = 20_000

/** Token buckets by key, in memory: a restart forgives. The key that was idle longest is forgotten first. */
export function createRateLimiter({ burst, per_second }: RateLimit): RateLimiter {
  const buckets = new Map<string, { tokens: number; at_ms: number }>()
  return {
    forget: key => {
      buckets.delete(key)
    },
    take(key, now_ms, epoch_ms) {
      const known = buckets.get(key)
      const tokens = known ? Math.min(burst, known.tokens + ((now_ms - known.at_ms) / 1000) * per_second) : burst
      const allowed = tokens >= 1
      const left = allowed ? tokens - 1 : tokens
      // Taking the key out first puts it at the end of the map's order: the first one is the idlest.
      buckets.delete(key)
      buckets.set(key, { tokens: left, at_ms: now_ms })
      if (buckets.size > MAX_KEYS) {
        const idlest = buckets.keys().next()
        if (!idlest.done) buckets.delete(idlest.value)
      }
      const full_in_seconds = (burst - left) / per_second
      const headers: Record<string, string> = {
        'X-RateLimit-Limit': String(burst),
        'X-RateLimit-Remaining': String(Math.floor(left)),
        'X-RateLimit-Reset': String(Math.ceil(epoch_ms / 1000 + full_in_seconds)),
      }
      if (!allowed) headers['Retry-After'] = String(Math.max(1, Math.ceil((1 - left) / per_second)))
      return { allowed, headers }
    },
  }
}
