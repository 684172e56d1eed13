import { boundedMap } from '../../core/domain/bounded-map.ts'

/** Allows `requests` requests in each window of `seconds` seconds. */
export interface RequestWindow {
  readonly requests: number
  readonly seconds: number
}

interface WindowVerdict {
  readonly allowed: boolean
  readonly headers: Readonly<Record<string, string>>
}

const MAX_KEYS = 20_000

/** Counts requests by key in memory; a restart resets the counts. A window begins with the first request of a key. */
export function createWindows({ requests, seconds }: RequestWindow) {
  const windows = boundedMap<string, { used: number; readonly ends_ms: number }>(MAX_KEYS)
  return {
    /** Counts a request. `now_ms` is monotonic; `epoch_ms` is the base of the X-RateLimit-Reset header. */
    take(key: string, now_ms: number, epoch_ms: number): WindowVerdict {
      const known = windows.get(key)
      const window = known && known.ends_ms > now_ms ? known : { used: 0, ends_ms: now_ms + seconds * 1000 }
      windows.set(key, window)
      const allowed = window.used < requests
      if (allowed) window.used += 1
      const left_seconds = Math.max(1, Math.ceil((window.ends_ms - now_ms) / 1000))
      return {
        allowed,
        headers: {
          'X-RateLimit-Limit': String(requests),
          'X-RateLimit-Remaining': String(requests - window.used),
          'X-RateLimit-Reset': String(Math.ceil(epoch_ms / 1000) + left_seconds),
          ...(allowed ? {} : { 'Retry-After': String(left_seconds) }),
        },
      }
    },
  }
}
