/** Time as processes see it. Durations come from `monotonic_ms`, records from `now`; tests pass a clock that jumps. */
export interface Clock {
  /** Milliseconds since the epoch, may jump. */
  now(): number
  /** Milliseconds of a clock that never jumps; all processes of a machine read the same. */
  monotonic_ms(): number
  after(delay_ms: number, run: () => void): Timer
  every(period_ms: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

// The first call is slow: between the two below it would set this thread's clock back.
performance.now()
/** The origin of `performance.now()` on the machine's monotonic clock. */
const STARTED_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The machine's clock. Its timers do not keep a process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic_ms: () => STARTED_MS + performance.now(),
  after(delay_ms, run) {
    const timer = setTimeout(run, delay_ms).unref()
    return { cancel: () => clearTimeout(timer) }
  },
  every(period_ms, run) {
    const timer = setInterval(run, period_ms).unref()
    return { cancel: () => clearInterval(timer) }
  },
}

let last_ms = Number.NaN
let last_iso = ''

/** ISO 8601 in UTC with milliseconds, the form of every time column and of the management API. */
export function iso(epoch_ms: number): string {
  // One moment is written many times over, by each of those who meet in it.
  if (epoch_ms !== last_ms) {
    last_iso = new Date(epoch_ms).toISOString()
    last_ms = epoch_ms
  }
  return last_iso
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.after(ms, done)
    signal?.addEventListener('abort', done)
  })
}
