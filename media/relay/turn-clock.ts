import type { Clock } from '../../core/runtime/clock.ts'
import type { EventFields } from '../protocol/schema.ts'

export type TurnFigures = Omit<EventFields<'relay.turn'>, 'leg_id' | 'relay_id'>

/** Measures one turn: from the end of the caller's speech to the first sound of the answer, by who needed the time. */
export class TurnClock {
  readonly #clock: Clock
  readonly #measured: (figures: TurnFigures) => void
  /** When the caller's voice was last heard; null while it goes on. */
  #voiced_ms: number | null = null
  #silent_ms: number | null = null
  #prompted: { voiced_ms: number; silent_ms: number; at_ms: number } | null = null
  #turn: { number: number; phrase_ms: number | null } | null = null

  constructor(clock: Clock, measured: (figures: TurnFigures) => void) {
    this.#clock = clock
    this.#measured = measured
  }

  /** The caller's voice is heard. */
  voiced(): void {
    this.#voiced_ms = this.#silent_ms = null
  }

  /** The caller's voice has not been heard for `quiet_ms`. */
  paused(quiet_ms: number): void {
    this.#voiced_ms = this.#clock.monotonic_ms() - quiet_ms
  }

  /** The detector takes the caller's speech to be over. */
  silent(): void {
    this.#silent_ms = this.#clock.monotonic_ms()
  }

  /** What the caller said is sent to the application. */
  prompted(): void {
    const at_ms = this.#clock.monotonic_ms()
    const voiced_ms = Math.min(at_ms, this.#voiced_ms ?? at_ms)
    // A recogniser may find the end of speech before the detector does.
    const silent_ms = Math.min(at_ms, this.#silent_ms ?? at_ms)
    this.#prompted = { voiced_ms, silent_ms, at_ms }
    this.#turn = null
  }

  /** The application's answer begins. */
  answering(turn: number): void {
    if (this.#prompted && !this.#turn) this.#turn = { number: turn, phrase_ms: null }
  }

  /** A phrase or sound of a turn is complete. */
  ready(turn: number): void {
    if (this.#turn?.number === turn) this.#turn.phrase_ms ??= this.#clock.monotonic_ms()
  }

  /** The first sound of a turn is played. */
  heard(turn: number, ready_ms: number): void {
    const prompted = this.#prompted
    if (!prompted || this.#turn?.number !== turn) return
    const now_ms = this.#clock.monotonic_ms()
    const phrase_ms = this.#turn.phrase_ms ?? prompted.at_ms
    this.#prompted = this.#turn = null
    const whole = (ms: number) => Math.max(0, Math.round(ms))
    this.#measured({
      detector_ms: whole(prompted.silent_ms - prompted.voiced_ms),
      recognizer_ms: whole(prompted.at_ms - prompted.silent_ms),
      customer_ms: whole(phrase_ms - prompted.at_ms),
      voice_ms: whole(ready_ms - phrase_ms),
      playout_ms: whole(now_ms - ready_ms),
      total_ms: whole(now_ms - prompted.voiced_ms),
    })
  }
}
