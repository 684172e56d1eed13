import { type Clock, systemClock } from '../../core/runtime/clock.ts'

/**
 * Returns a clock that advances only by `move`, so that no second, window, hour or day ends between two reads of a
 * test, however slow it runs. Timers run in real time. The clock begins in the middle of an hour, a day and a month.
 */
export function standingClock(begin = '2026-03-11T12:34:56.789Z'): Clock & { move(by_ms: number): void } {
  const begin_ms = Date.parse(begin)
  let moved_ms = 0
  return {
    ...systemClock,
    now: () => begin_ms + moved_ms,
    monotonic_ms: () => moved_ms,
    move: by_ms => {
      moved_ms += by_ms
    },
  }
}
