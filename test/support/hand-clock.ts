import type { Clock } from '../../core/runtime/clock.ts'

/** A clock that a test moves, with one repeating timer that the test fires. */
export function handClock(): { readonly clock: Clock; passes(ms: number): void; fire(): void } {
  let now_ms = 0
  let fire = (): void => undefined
  const clock: Clock = {
    now: () => now_ms,
    monotonic_ms: () => now_ms,
    after: () => ({ cancel: () => undefined }),
    every(_period_ms, run) {
      fire = run
      return { cancel: () => undefined }
    },
  }
  return {
    clock,
    passes(ms) {
      now_ms += ms
    },
    fire: () => fire(),
  }
}
