import type { Clock } from '../../../core/runtime/clock.ts'

/** A clock that runs `speed` times as fast as the machine's, so that 32 s of RFC 3261 pass in 3.2 s of a test. */
export function fastClock(speed: number): Clock {
  const wall = Date.now()
  const start = performance.now()
  return {
    now: () => wall + (performance.now() - start) * speed,
    monotonic_ms: () => performance.now() * speed,
    after(delay_ms, run) {
      const timer = setTimeout(run, delay_ms / speed).unref()
      return { cancel: () => clearTimeout(timer) }
    },
    every(period_ms, run) {
      const timer = setInterval(run, period_ms / speed).unref()
      return { cancel: () => clearInterval(timer) }
    },
  }
}
