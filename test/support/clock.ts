import { type Clock, systemClock } from '../../core/runtime/clock.ts'

/**
 * A clock that stands until it is moved: no second, window, hour or day ends between two looks of a test, however long
 * it takes. Its timers run as those of the machine's clock do. Begins in the middle of a day, an hour and a month.
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
