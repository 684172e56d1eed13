import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { EngineEvent } from '../../native/index.ts'
import type { EventFields, MethodParams } from '../protocol/schema.ts'
import type { AudioLine } from '../relay/types.ts'
import { RATE_HZ, type RecognitionSession, type Recognizer, type Track } from './recognizer.ts'

export type RecognizeRequest = MethodParams<'recognize.start'>

interface RecognitionOptions {
  readonly request: RecognizeRequest
  readonly stream: AudioLine
  readonly tap_prefix: string
  readonly recognizer: Recognizer
  readonly clock: Clock
  readonly started: (track: Track) => void
  readonly heard: (result: Omit<EventFields<'recognize.result'>, 'leg_id' | 'recognize_id'>) => void
  readonly ended: (fault: string | null) => void
}

const CHUNK_MS = 20
const LOOK_MS = 100
/**
 * Audio that lagged by more than LATE_MS at a look and has not come by the next one was never sent, because the peer is
 * silent. Silence fills all but the last JITTER_MS.
 */
const LATE_MS = 400
const JITTER_MS = 200

/** Recognises what a leg says or hears, until it is stopped or the engine fails. */
export class Recognition {
  readonly #options: RecognitionOptions
  readonly #taps = new Map<string, Track>()
  readonly #session: RecognitionSession
  readonly #timer: Timer
  readonly #began_ms: number
  /** Milliseconds of the inbound track that the engine has received. */
  #fed_ms = 0
  #looked_ms: number
  #over = false

  constructor(options: RecognitionOptions) {
    this.#options = options
    const { request, stream, tap_prefix } = options
    const { leg_id, engine, noise_suppression, tracks, ...settings } = request
    if (tracks !== 'outbound') this.#taps.set(`${tap_prefix}i`, 'inbound')
    if (tracks !== 'inbound') this.#taps.set(`${tap_prefix}o`, 'outbound')
    this.#began_ms = options.clock.monotonic_ms()
    this.#looked_ms = this.#began_ms
    this.#timer = options.clock.every(LOOK_MS, () => this.#fillGap())
    this.#session = options.recognizer.open(
      { ...settings, tracks: [...this.#taps.values()] },
      {
        started: track => !this.#over && options.started(track),
        heard: result => !this.#over && options.heard(result),
        ended: fault => this.#end(fault),
      },
    )
    if (this.#over) return
    const how = { rate_hz: RATE_HZ, chunk_ms: CHUNK_MS, suppress_noise: noise_suppression ?? false } as const
    for (const [tap_id, track] of this.#taps)
      stream.tap({ tap_id, what: track === 'inbound' ? 'received' : 'sent', ...how })
  }

  onTap(event: Extract<EngineEvent, { type: 'tap' }>): boolean {
    const track = this.#taps.get(event.tap_id)
    if (track === undefined) return false
    if (!this.#over) this.#audio(track, event.samples, event.offset_ms)
    return true
  }

  stop(): void {
    this.#session.stop()
  }

  #audio(track: Track, samples: Int16Array, offset_ms: number): void {
    if (track === 'inbound') this.#fed_ms += (samples.length * 1000) / RATE_HZ
    this.#session.audio(track, samples, offset_ms)
  }

  /**
   * Feeds silence when the peer sends no packets, so that a pause still ends an utterance. After this process stood
   * still, a look comes before the audio that arrived meanwhile. So it judges what was missing at the look before it.
   */
  #fillGap(): void {
    if (this.#over || this.#options.request.tracks === 'outbound') return
    const missing_ms = this.#looked_ms - this.#began_ms - this.#fed_ms
    this.#looked_ms = this.#options.clock.monotonic_ms()
    if (missing_ms < LATE_MS) return
    const frames = Math.floor((missing_ms - JITTER_MS) / CHUNK_MS)
    for (let frame = 0; frame < frames && !this.#over; frame++)
      this.#audio('inbound', new Int16Array((RATE_HZ * CHUNK_MS) / 1000), this.#fed_ms)
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    this.#timer.cancel()
    const { stream, ended } = this.#options
    if (!stream.closed) for (const tap_id of this.#taps.keys()) stream.untap(tap_id)
    ended(fault)
  }
}
