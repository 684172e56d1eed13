import type { Clock } from '../../core/runtime/clock.ts'

/** How often to look for missing audio. */
export const LOOK_MS = 100
/**
 * Audio that lagged by more than LATE_MS at a look and has not come by the next one was never sent, because the peer is
 * silent. All but the last JITTER_MS of it was silence.
 */
const LATE_MS = 400
const JITTER_MS = 200

/**
 * Measures what a peer that sends no packets in its pauses leaves out of its audio. After this process stood still, a
 * look comes before the audio that arrived meanwhile. So it judges what was missing at the look before it.
 */
export class MissingAudio {
  readonly #clock: Pick<Clock, 'monotonic_ms'>
  readonly #began_ms: number
  #looked_ms: number
  #fed_ms = 0

  constructor(clock: Pick<Clock, 'monotonic_ms'>) {
    this.#clock = clock
    this.#began_ms = clock.monotonic_ms()
    this.#looked_ms = this.#began_ms
  }

  /** Milliseconds of audio so far, with the silence. */
  get fed_ms(): number {
    return this.#fed_ms
  }

  fed(ms: number): void {
    this.#fed_ms += ms
  }

  /** Returns how much silence is missing now, in ms, a multiple of `frame_ms`. */
  look(frame_ms: number): number {
    const missing_ms = this.#looked_ms - this.#began_ms - this.#fed_ms
    this.#looked_ms = this.#clock.monotonic_ms()
    return missing_ms < LATE_MS ? 0 : Math.floor((missing_ms - JITTER_MS) / frame_ms) * frame_ms
  }
}
