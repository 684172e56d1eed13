import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { EngineEvent, Stream } from '../../native/index.ts'
import { AnsweringMachineDetector, type DetectionSettings, type MachineVerdict } from './answering-machine.ts'
import { LOOK_MS, MissingAudio } from './missing-audio.ts'

const RATE_HZ = 8000
const FRAME_MS = 20

/**
 * Runs a detector on what a stream receives. Missing audio counts as silence, so there is always a verdict.
 */
export class Detection {
  readonly #stream: Stream
  readonly #tap_id: string
  readonly #detector: AnsweringMachineDetector
  readonly #onVerdict: (verdict: MachineVerdict) => void
  readonly #missing: MissingAudio
  readonly #timer: Timer
  #over = false

  constructor(
    stream: Stream,
    tap_id: string,
    settings: DetectionSettings,
    clock: Clock,
    onVerdict: (verdict: MachineVerdict) => void,
  ) {
    this.#stream = stream
    this.#tap_id = tap_id
    this.#detector = new AnsweringMachineDetector(settings)
    this.#onVerdict = onVerdict
    this.#missing = new MissingAudio(clock)
    this.#timer = clock.every(LOOK_MS, () => this.#fillGap())
    stream.tap({ tap_id, what: 'received', rate_hz: RATE_HZ, chunk_ms: FRAME_MS })
  }

  onTap(event: Extract<EngineEvent, { type: 'tap' }>): boolean {
    if (event.tap_id !== this.#tap_id) return false
    if (this.#over) return true
    const size = (RATE_HZ * FRAME_MS) / 1000
    for (let at = 0; at + size <= event.samples.length && !this.#over; at += size) {
      this.#missing.fed(FRAME_MS)
      this.#take(this.#detector.frame(event.samples.subarray(at, at + size)))
    }
    return true
  }

  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#timer.cancel()
    if (!this.#stream.closed) this.#stream.untap(this.#tap_id)
  }

  /** Feeds silence for a peer that sends no packets in pauses. */
  #fillGap(): void {
    const silent_ms = this.#missing.look(FRAME_MS)
    if (silent_ms === 0) return
    this.#missing.fed(silent_ms)
    this.#take(this.#detector.silence(silent_ms))
  }

  #take(verdict: MachineVerdict | null): void {
    if (!verdict || this.#over) return
    this.stop()
    this.#onVerdict(verdict)
  }
}
