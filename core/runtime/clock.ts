/** A source of time. Use `monotonic_ms` for durations and `now` for records. Tests pass a clock that jumps. */
export interface Clock {
  /** Milliseconds since the epoch; may jump. */
  now(): number
  /** Milliseconds of a clock that never jumps. All processes of a machine share it. */
  monotonic_ms(): number
  after(delay_ms: number, run: () => void): Timer
  every(period_ms: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The longest delay of a timer, 24 days: that of Node.js. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

// The first call of performance.now() is slow. Between the two reads below it would set this thread's clock back.
performance.now()
/** The origin of `performance.now()` on the machine's monotonic clock. */
const STARTED_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** A timer this late shows that the process stood still: a paused virtual machine, a busy core, long work. */
const STOOD_STILL_MS = 100

/**
 * Starts a timer of Node.js by `start`. When it is late, `run` waits until the sockets have been read: Node.js runs due
 * timers, then reads sockets, then runs immediates.
 */
function timed(start: (fire: () => void, ms: number) => NodeJS.Timeout, ms: number, run: () => void): Timer {
  let due_ms = performance.now() + ms
  let read: NodeJS.Immediate | undefined
  const fire = (): void => {
    const now_ms = performance.now()
    const late = now_ms > due_ms + STOOD_STILL_MS
    due_ms = now_ms + ms
    if (late) read = setImmediate(run).unref()
    else run()
  }
  const timer = start(fire, ms).unref()
  return {
    cancel() {
      clearTimeout(timer)
      if (read) clearImmediate(read)
    },
  }
}

/**
 * The machine's clock. Its timers do not keep a process alive. After the process stood still, what has arrived on its
 * sockets comes before timers that fell due: the answer that a timer waits for may be among it.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic_ms: () => STARTED_MS + performance.now(),
  after: (delay_ms, run) => timed(setTimeout, delay_ms, run),
  every: (period_ms, run) => timed(setInterval, period_ms, run),
}

let last_ms = Number.NaN
let last_iso = ''

/** Formats a time as ISO 8601 in UTC with milliseconds, the form of time columns and of the management API. */
export function iso(epoch_ms: number): string {
  // Many callers format the same millisecond.
  if (epoch_ms !== last_ms) {
    last_iso = new Date(epoch_ms).toISOString()
    last_ms = epoch_ms
  }
  return last_iso
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function delay(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
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
