import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { EngineEvent } from '../../native/index.ts'
import { LOOK_MS, MissingAudio } from '../detect/missing-audio.ts'
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
  /** Called once at most. */
  readonly warned: (detail: string) => void
  readonly ended: (fault: string | null) => void
}

const CHUNK_MS = 20
/** How long the engine may take for its last results. */
const LAST_WORDS_MS = 3000

/** Recognises what a leg says or hears, until it is stopped or the engine fails. */
export class Recognition {
  readonly #options: RecognitionOptions
  readonly #taps = new Map<string, Track>()
  readonly #session: RecognitionSession
  readonly #timer: Timer
  readonly #missing = new Map<Track, MissingAudio>()
  /** Set while the last results are awaited. */
  #limit: Timer | null = null
  #warned = false
  #over = false

  constructor(options: RecognitionOptions) {
    this.#options = options
    const { request, stream, tap_prefix } = options
    const { leg_id, engine, noise_suppression, last_words, tracks, ...settings } = request
    if (tracks !== 'outbound') this.#taps.set(`${tap_prefix}i`, 'inbound')
    if (tracks !== 'inbound') this.#taps.set(`${tap_prefix}o`, 'outbound')
    for (const track of this.#taps.values()) this.#missing.set(track, new MissingAudio(options.clock))
    this.#timer = options.clock.every(LOOK_MS, () => this.#fillGaps())
    this.#session = options.recognizer.open(
      { ...settings, tracks: [...this.#taps.values()] },
      {
        started: track => !this.#over && options.started(track),
        heard: result => !this.#over && options.heard(result),
        warned: detail => this.#warn(detail),
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
    if (!this.#over && !this.#limit) this.#audio(track, event.samples)
    return true
  }

  /** Ends the recognition: at once, or when the results of what has been said so far are there. */
  stop(): void {
    if (this.#over || this.#limit) return
    if (!this.#options.request.last_words) {
      this.#session.stop()
      return
    }
    this.#deafen()
    this.#limit = this.#options.clock.after(LAST_WORDS_MS, () => this.#session.stop())
    this.#session.finish()
  }

  #warn(detail: string): void {
    if (this.#over || this.#warned) return
    this.#warned = true
    this.#options.warned(detail)
  }

  #audio(track: Track, samples: Int16Array): void {
    const missing = this.#missing.get(track)
    const offset_ms = missing?.fed_ms ?? 0
    missing?.fed((samples.length * 1000) / RATE_HZ)
    this.#session.audio(track, samples, offset_ms)
  }

  /**
   * Feeds silence while the peer sends no packets, or nothing is played to it, so that a pause still ends an utterance.
   */
  #fillGaps(): void {
    for (const [track, missing] of this.#missing) {
      const silent_ms = missing.look(CHUNK_MS)
      for (let done_ms = 0; done_ms < silent_ms && !this.#over; done_ms += CHUNK_MS)
        this.#audio(track, new Int16Array((RATE_HZ * CHUNK_MS) / 1000))
    }
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    this.#limit?.cancel()
    this.#deafen()
    this.#options.ended(fault)
  }

  #deafen(): void {
    this.#timer.cancel()
    const { stream } = this.#options
    if (!stream.closed) for (const tap_id of this.#taps.keys()) stream.untap(tap_id)
  }
}
