import type { Clock } from '../../../core/runtime/clock.ts'

/** A clock of a test. */
interface TestClock extends Clock {
  /** How many times as fast as the machine's it runs; at 0 it stands still. */
  speed: number
  /** Resolves when so much of its own time has passed. */
  pass(ms: number): Promise<void>
}

interface Alarm {
  due_ms: number
  readonly period_ms: number | null
  readonly run: () => void
  cancelled: boolean
}

/** How late, by the machine's clock, an alarm may ring before the time beyond that is left out. */
const SLACK_MS = 10

/**
 * A clock for what runs in one process together with its peers, `speed` times as fast as the machine's: at 10, 32 s of
 * RFC 3261 pass in 3.2 s. While the process gets no CPU no time passes: what its peers have sent meanwhile waits in
 * sockets, and would be read only after every timer that is overdue.
 */
export function testClock(speed = 1): TestClock {
  const wall_ms = Date.now()
  const alarms: Alarm[] = []
  // As of a machine that has been up for a while.
  let passed_ms = 1_000_000
  let looked_ms = performance.now()
  let waking: NodeJS.Timeout | undefined

  const first = (): Alarm | undefined => {
    while (alarms[0]?.cancelled) alarms.shift()
    return alarms[0]
  }
  const look = (): number => {
    const real_ms = performance.now()
    const due_ms = first()?.due_ms ?? Number.POSITIVE_INFINITY
    const latest_ms = Math.max(passed_ms, due_ms + SLACK_MS * clock.speed)
    passed_ms = Math.min(passed_ms + (real_ms - looked_ms) * clock.speed, latest_ms)
    looked_ms = real_ms
    return passed_ms
  }
  const sleep = (): void => {
    clearTimeout(waking)
    const next = first()
    if (next && clock.speed > 0) waking = setTimeout(ring, (next.due_ms - passed_ms) / clock.speed).unref()
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
