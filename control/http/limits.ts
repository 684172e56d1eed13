import { createRateLimiter, type RateLimit, type RateLimiter } from './rate-limit.ts'
import type { SharedRates } from './shared-rates.ts'
import { createWindows, type RequestWindow } from './window.ts'

/** Makes the limits of requests. Those of one name count together on all machines that share a state. */
export interface RequestLimits {
  /** A token bucket for each key. */
  bucket(name: string, limit: RateLimit): RateLimiter
  /** A window for each key. */
  window(name: string, window: RequestWindow): Pick<RateLimiter, 'take'>
}

/** Limits of one machine, which counts in memory; with `shared`, of all. */
export const limitsBy = (shared: SharedRates | null): RequestLimits =>
  shared === null
    ? { bucket: (_, limit) => createRateLimiter(limit), window: (_, window) => createWindows(window) }
    : {
        bucket(name, limit) {
          const own = createRateLimiter(limit)
          const shape = { ...limit, window_ms: null }
          return {
            take: (key, now_ms, epoch_ms) =>
              shared.take(name, shape, key, epoch_ms, () => own.take(key, now_ms, epoch_ms)),
            forget(key) {
              own.forget(key)
              shared.forget(name, shape, key)
            },
          }
        },
        window(name, window) {
          const own = createWindows(window)
          const shape = { burst: window.requests, per_second: 0, window_ms: window.seconds * 1000 }
          return {
            take: (key, now_ms, epoch_ms) =>
              shared.take(name, shape, key, epoch_ms, () => own.take(key, now_ms, epoch_ms)),
          }
        },
      }
