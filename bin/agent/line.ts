import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { AudioLine } from '../../media/relay/types.ts'
import {
  type EngineEvent,
  type HeardFrame,
  hearing,
  type SpeechWatchOptions,
  type TapOptions,
} from '../../native/index.ts'

const FRAME_MS = 20
const FRAME = 160
/** A level below which a frame of the agent is silence. */
const QUIET = 200
const MAX_FEED = 8000 * 600

/** `yields`: the caller's voice stops it. */
interface Fed {
  readonly samples: Int16Array
  readonly yields: boolean
}

/** A telephone line without a network: what the caller says, and what the caller hears, in real time at 8 kHz. */
export class TerminalLine implements AudioLine {
  closed = false
  /** What the caller has heard so far. */
  readonly heard: Int16Array[] = []
  /** Passes the events that the data plane would. */
  onEvent: (event: EngineEvent) => void = () => undefined
  readonly #clock: Clock
  readonly #timer: Timer
  readonly #begin_ms: number
  readonly #taps = new Map<string, { readonly options: TapOptions; frames: number }>()
  #frames = 0
  #said: Int16Array[] = []
  /** Sound and marks in order. */
  #feed: (Fed | string)[] = []
  #lastMark = ''
  #since_mark_frames = 0
  #hear: ((frame: Int16Array) => HeardFrame) | null = null
  #fed = 0
  #sounded = 0
  #silent = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#begin_ms = clock.monotonic_ms()
    this.#timer = clock.every(FRAME_MS, () => this.#tick())
  }

  /** The caller says samples at 8 kHz. */
  say(samples: Int16Array): void {
    for (let at = 0; at < samples.length; at += FRAME) this.#said.push(padded(samples.subarray(at, at + FRAME)))
  }

  get saying(): boolean {
    return this.#said.length > 0
  }

  /** How many milliseconds with sound the caller has heard, and how many of silence since the last. */
  get agent(): { readonly sounded_ms: number; readonly silent_ms: number } {
    return { sounded_ms: this.#sounded * FRAME_MS, silent_ms: this.#silent * FRAME_MS }
  }

  tap(options: TapOptions): void {
    this.#taps.set(options.tap_id, { options, frames: 0 })
  }

  untap(tap_id: string): void {
    this.#taps.delete(tap_id)
  }

  watchSpeech(options: SpeechWatchOptions): void {
    this.#hear = hearing(options)
  }

  unwatchSpeech(): void {
    this.#hear = null
  }

  feed(given: Int16Array, _rate_hz: number, yields = false): number {
    const samples = given.subarray(0, Math.max(0, MAX_FEED - this.#fed))
    this.#fed += samples.length
    this.#feed.push({ samples, yields })
    return samples.length
  }

  feedMark(name: string): void {
    this.#feed.push(name)
  }

  feedClear(): void {
    const marks = this.#feed.filter(part => typeof part === 'string')
    this.#feed = []
    this.#fed = 0
    for (const name of marks) this.onEvent({ type: 'mark', stream_id: 0, name })
  }

  close(): void {
    this.closed = true
    this.#timer.cancel()
  }

  #tick(): void {
    const due = Math.floor((this.#clock.monotonic_ms() - this.#begin_ms) / FRAME_MS)
    while (this.#frames < due && !this.closed) this.#frame()
  }

  #frame(): void {
    this.#frames++
    const sent = this.#next()
    this.heard.push(sent)
    const loud = sent.some(sample => Math.abs(sample) > QUIET)
    this.#sounded += loud ? 1 : 0
    this.#silent = loud ? 0 : this.#silent + 1
    const said = this.#said.shift() ?? new Int16Array(FRAME)
    const heard = this.#hear?.(said) ?? { samples: said, edges: [] }
    for (const { edge, quiet_ms } of heard.edges) this.#speech(edge, quiet_ms)
    for (const [tap_id, tap] of [...this.#taps]) {
      const received = tap.options.suppress_noise ? heard.samples : said
      const samples = tap.options.what === 'received' ? received : sent
      this.onEvent({ type: 'tap', stream_id: 0, tap_id, samples, offset_ms: tap.frames++ * FRAME_MS })
    }
  }

  /** Stops what is fed when it yields to the caller's voice, and passes the edges of the caller's speech. */
  #speech(edge: HeardFrame['edges'][number]['edge'], quiet_ms: number): void {
    const next = this.#feed.find(part => typeof part !== 'string')
    if ((edge === 'began' || edge === 'voiced' || edge === 'resumed') && next?.yields) {
      const played_ms = this.#since_mark_frames * FRAME_MS
      this.onEvent({ type: 'feed_cut', stream_id: 0, mark: this.#lastMark, played_ms })
      this.feedClear()
    }
    if (edge !== 'voiced') this.onEvent({ type: 'speech', stream_id: 0, edge, quiet_ms })
  }

  /** Takes a frame of the feed, and passes the marks that it reaches. */
  #next(): Int16Array {
    const frame = new Int16Array(FRAME)
    let at = 0
    for (let part = this.#feed[0]; part !== undefined; part = this.#feed[0]) {
      if (typeof part === 'string') {
        this.#feed.shift()
        this.#lastMark = part
        this.#since_mark_frames = 0
        this.onEvent({ type: 'mark', stream_id: 0, name: part })
        continue
      }
      const { samples, yields } = part
      const taken = samples.subarray(0, FRAME - at)
      frame.set(taken, at)
      at += taken.length
      this.#fed -= taken.length
      if (taken.length < samples.length) this.#feed[0] = { samples: samples.subarray(taken.length), yields }
      else this.#feed.shift()
      if (at === FRAME) break
    }
    this.#since_mark_frames++
    return frame
  }
}

function padded(samples: Int16Array): Int16Array {
  const frame = new Int16Array(FRAME)
  frame.set(samples)
  return frame
}
