import { frameLevelDbm0 } from '../detect/frame.ts'
import { RATE_HZ } from './recognizer.ts'

interface UtteranceOptions {
  /** The silence that ends an utterance. */
  readonly silence_ms: number
  /** Longer utterances are cut at this length. */
  readonly max_ms: number
  readonly started: () => void
  /** Called with the utterance and up to 300 ms of audio before it. */
  readonly ended: (samples: Int16Array) => void
}

const FRAME_MS = 20
const FRAME = (RATE_HZ * FRAME_MS) / 1000
const SPEECH_DBM0 = -38
/** This many consecutive loud frames are speech rather than a click. */
const SPEECH_FRAMES = 4
const KEPT_BEFORE_FRAMES = 15

/** Divides a track into utterances by its level. */
export class Utterances {
  readonly #options: UtteranceOptions
  #frames: Int16Array[] = []
  #rest = new Int16Array(0)
  #speaking = false
  #loud = 0
  #quiet = 0

  constructor(options: UtteranceOptions) {
    this.#options = options
  }

  /** Takes samples at 8 kHz. */
  take(samples: Int16Array): void {
    const all = new Int16Array(this.#rest.length + samples.length)
    all.set(this.#rest)
    all.set(samples, this.#rest.length)
    let at = 0
    for (; at + FRAME <= all.length; at += FRAME) this.#frame(all.slice(at, at + FRAME))
    this.#rest = all.slice(at)
  }

  #frame(frame: Int16Array): void {
    const loud = frameLevelDbm0(frame) > SPEECH_DBM0
    this.#loud = loud ? this.#loud + 1 : 0
    this.#quiet = loud ? 0 : this.#quiet + 1
    this.#frames.push(frame)
    if (!this.#speaking) {
      if (this.#frames.length > KEPT_BEFORE_FRAMES) this.#frames.shift()
      if (this.#loud < SPEECH_FRAMES) return
      this.#speaking = true
      this.#options.started()
      return
    }
    const { silence_ms, max_ms } = this.#options
    if (this.#quiet * FRAME_MS >= silence_ms || this.#frames.length * FRAME_MS >= max_ms) this.end()
  }

  /** Ends the utterance that goes on, if there is one. */
  end(): void {
    if (!this.#speaking) return
    const said = new Int16Array(this.#frames.length * FRAME)
    for (const [index, piece] of this.#frames.entries()) said.set(piece, index * FRAME)
    this.#frames = []
    this.#speaking = false
    this.#loud = 0
    this.#options.ended(said)
  }
}
