import type {
  RecognitionListener,
  RecognitionSession,
  RecognitionSettings,
  Recognizer,
  Result,
  Track,
} from './recognizer.ts'
import { Utterances } from './utterances.ts'

/** One utterance of 16-bit samples at 8 kHz, to be recognised. `stop` is aborted when nobody waits for it any more. */
export interface Utterance {
  readonly samples: Int16Array
  readonly track: Track
  readonly settings: RecognitionSettings
  readonly stop: AbortSignal
}

/** Recognises an utterance, or tells in one sentence why it cannot. `warning` tells how it served otherwise. */
type RecognizeUtterance = (
  utterance: Utterance,
) => Promise<(Omit<Result, 'final'> & { readonly warning?: string }) | { readonly fault: string }>

/** Makes a recogniser of what recognises single utterances. This side finds each utterance by its level. */
export const byUtterance = (recognize: RecognizeUtterance): Recognizer => ({
  open: (settings, listener) => new Listening(recognize, settings, listener),
})

/** The silence that ends an utterance when the document leaves the choice to the engine. */
const AUTO_SILENCE_MS = 1000
const MAX_FAILURES = 3
/** Utterances that wait for the recogniser. Each holds its samples. */
const MAX_WAITING = 10

class Listening implements RecognitionSession {
  readonly #recognize: RecognizeUtterance
  readonly #settings: RecognitionSettings
  readonly #listener: RecognitionListener
  readonly #utterances = new Map<Track, Utterances>()
  readonly #abort = new AbortController()
  /** Requests run in sequence, so that results keep the order of the utterances. */
  #asking: Promise<void> = Promise.resolve()
  #failures = 0
  #waiting = 0
  #over = false

  constructor(recognize: RecognizeUtterance, settings: RecognitionSettings, listener: RecognitionListener) {
    this.#recognize = recognize
    this.#settings = settings
    this.#listener = listener
    const { max_speech_ms: max_ms } = settings
    // An utterance needs a pause to end, so 0 means the shortest pause.
    const silence_ms = Math.max(200, settings.silence_ms ?? AUTO_SILENCE_MS)
    for (const track of settings.tracks)
      this.#utterances.set(
        track,
        new Utterances({
          silence_ms,
          max_ms,
          started: () => listener.started(track),
          ended: samples => this.#ask(track, samples),
        }),
      )
  }

  audio(track: Track, samples: Int16Array): void {
    if (!this.#over) this.#utterances.get(track)?.take(samples)
  }

  finish(): void {
    for (const utterances of this.#utterances.values()) utterances.end()
    void this.#asking.then(() => this.stop())
  }

  stop(): void {
    this.#end(null)
  }

  #ask(track: Track, samples: Int16Array): void {
    if (this.#waiting >= MAX_WAITING) {
      this.#end('the recognizer is slower than the speech')
      return
    }
    this.#waiting++
    this.#asking = this.#asking
      .then(() => this.#one(track, samples))
      .finally(() => {
        this.#waiting--
      })
  }

  async #one(track: Track, samples: Int16Array): Promise<void> {
    if (this.#over) return
    const settings = this.#settings
    const result = await this.#recognize({ samples, track, settings, stop: this.#abort.signal }).catch(
      (error: Error) => ({ fault: error.message }),
    )
    if (this.#over) return
    if (!('fault' in result)) {
      this.#failures = 0
      const { warning, ...heard } = result
      if (warning !== undefined) this.#listener.warned(warning)
      this.#listener.heard({ ...heard, final: true })
      return
    }
    // With several tracks, a failed utterance is skipped until MAX_FAILURES in a row. With one track, the first failure
    // ends the recognition.
    if (++this.#failures >= MAX_FAILURES || settings.tracks.length === 1) this.#end(result.fault)
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    this.#abort.abort()
    this.#listener.ended(fault)
  }
}
