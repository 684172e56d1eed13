import type { Clock } from '../../../core/runtime/clock.ts'

/** A clock for tests. */
interface TestClock extends Clock {
  /** Speed relative to the machine's clock; at 0 the clock is stopped. */
  speed: number
  /** Resolves when `ms` of this clock's time have passed. */
  pass(ms: number): Promise<void>
}

interface Alarm {
  due_ms: number
  readonly period_ms: number | null
  readonly run: () => void
  cancelled: boolean
}

/** How often the clock is read while an alarm is set, by the machine's clock. */
const LOOK_MS = 10
/** How much later it may be read. Any further time does not pass. */
const SLACK_MS = 10

/**
 * Returns a clock for code that runs in one process with its peers, `speed` times as fast as the machine's: at 10, the
 * 32 s of RFC 3261 take 3.2 s. No time passes while the process gets no CPU. Otherwise all overdue timers would fire
 * before the process reads what its peers have sent meanwhile.
 */
export function testClock(speed = 1): TestClock {
  const wall_ms = Date.now()
  const alarms: Alarm[] = []
  // Like a machine that has been up for a while.
  let passed_ms = 1_000_000
  let looked_ms = performance.now()
  let waking: NodeJS.Timeout | undefined

  const first = (): Alarm | undefined => {
    while (alarms[0]?.cancelled) alarms.shift()
    return alarms[0]
  }
  const look = (): number => {
    const real_ms = performance.now()
    const most_ms = first() === undefined ? Number.POSITIVE_INFINITY : LOOK_MS + SLACK_MS
    passed_ms += Math.min(real_ms - looked_ms, most_ms) * clock.speed
    looked_ms = real_ms
    return passed_ms
  }
  const sleep = (): void => {
    clearTimeout(waking)
    const next = first()
    if (!next || clock.speed === 0) return
    waking = setTimeout(ring, Math.min(LOOK_MS, (next.due_ms - passed_ms) / clock.speed)).unref()
  }
  const ring = (): void => {
    const now_ms = look()
    for (let alarm = first(); alarm && alarm.due_ms <= now_ms; alarm = first()) {
      alarms.shift()
      alarm.run()
      if (alarm.period_ms === null || alarm.cancelled) continue
      alarm.due_ms += alarm.period_ms
      put(alarm)
    }
    sleep()
  }
  const put = (alarm: Alarm): void => {
    let at = alarms.length
    while (at > 0 && (alarms[at - 1]?.due_ms ?? 0) > alarm.due_ms) at--
    alarms.splice(at, 0, alarm)
  }
  const set = (ms: number, run: () => void, period_ms: number | null) => {
    const alarm: Alarm = { due_ms: look() + ms, period_ms, run, cancelled: false }
    put(alarm)
    if (first() === alarm) sleep()
    return {
      cancel: () => {
        look()
        alarm.cancelled = true
      },
    }
  }
  let pace = speed
  const clock: TestClock = {
    get speed() {
      return pace
    },
    set speed(times) {
      look()
      pace = times
      sleep()
    },
    now: () => wall_ms + look(),
    monotonic_ms: () => look(),
    after: (ms, run) => set(ms, run, null),
    every: (ms, run) => set(ms, run, ms),
    pass: ms => new Promise(resolve => set(ms, resolve, null)),
  }
  return clock
}
