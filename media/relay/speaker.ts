import type { Clock } from '../../core/runtime/clock.ts'
import type { SampleRate } from '../../native/index.ts'
import type { Loaded } from '../files/prompts.ts'
import type { PlaySource } from '../protocol/schema.ts'
import { type AudioLine, type Interruptible, includes } from './types.ts'

/** One phrase or sound of the application. */
interface Saying {
  /** The turn of the application that it belongs to. */
  readonly turn: number
  /** What the caller hears as text; empty for a sound. */
  readonly text: string
  readonly source: PlaySource
  /** 0: until it is stopped. */
  readonly loop: number
  readonly interruptible: Interruptible
  readonly preemptible: boolean
}

interface SpeakerOptions {
  readonly stream: AudioLine
  /** A prefix of marks, unique among all legs. */
  readonly prefix: string
  readonly clock: Clock
  load(source: PlaySource): Promise<Loaded>
  /** The first sound of a turn is played. `ready_ms` is when it was ready to be. */
  began(turn: number, ready_ms: number): void
  failed(detail: string): void
  /** It is said otherwise than asked. */
  warned(detail: string): void
}

/** A saying in the feed of the data plane. */
interface Fed {
  readonly saying: Saying
  readonly ready_ms: number
  readonly duration_ms: number
  began_ms: number | null
}

/** Sayings that are loaded or fed before they are played. */
const AHEAD = 2
const MAX_WAITING_CHARACTERS = 65_536
const MAX_WAITING = 1000

/** What the caller had heard of a turn when it was interrupted. */
export interface HeardTurn {
  readonly text: string
  readonly ms: number
}

/** Says the application's phrases and sounds in order, through the feed of a stream, and knows what has been heard. */
export class Speaker {
  readonly #options: SpeakerOptions
  #waiting: Saying[] = []
  #loading: Saying | null = null
  readonly #fed = new Map<number, Fed>()
  #next_id = 1
  /** Rises when all is dropped, so that late results and marks are recognised. */
  #epoch = 0
  /** What was heard of the current turn before the saying that is playing. */
  #heard = { turn: -1, text: '', began_ms: 0 }

  constructor(options: SpeakerOptions) {
    this.#options = options
  }

  /** Adds a saying; false when too many wait. */
  say(saying: Saying): boolean {
    const characters = this.#waiting.reduce((sum, { text }) => sum + text.length, saying.text.length)
    if (characters > MAX_WAITING_CHARACTERS || this.#waiting.length >= MAX_WAITING) return false
    this.#waiting.push(saying)
    this.#fill()
    return true
  }

  /** Drops sayings of other turns that a new turn may cut. */
  preempt(turn: number): void {
    const older = (saying: Saying) => saying.turn !== turn && saying.preemptible
    if (!this.#all().some(older)) return
    const kept = this.#waiting.filter(saying => !older(saying))
    const current = this.#all().slice(0, this.#fed.size + (this.#loading ? 1 : 0))
    if (current.every(older)) this.drop()
    this.#waiting = kept
    this.#fill()
  }

  get speaking(): boolean {
    return this.#first !== undefined
  }

  /** Reports whether this input stops what is being said; also true while nothing is. */
  yieldsTo(input: 'dtmf' | 'speech'): boolean {
    const now = this.#first
    return now === undefined || includes(now.interruptible, input)
  }

  /**
   * Stops at once. Returns what the caller had heard of the turn; null when nothing was being said. `played_ms` is what
   * was played of the current saying, when that is known.
   */
  cut(played_ms?: number): HeardTurn | null {
    if (!this.speaking) return null
    const now_ms = this.#options.clock.monotonic_ms()
    const playing = [...this.#fed.values()].find(({ began_ms }) => began_ms !== null)
    const turn = this.#first?.turn ?? -1
    const before = this.#heard.turn === turn ? this.#heard : { text: '', began_ms: now_ms }
    const partly = playing ? heardOf(playing, played_ms ?? now_ms - (playing.began_ms ?? now_ms)) : ''
    this.drop()
    this.#heard = { turn: -1, text: '', began_ms: 0 }
    return { text: (before.text + partly).trim(), ms: Math.max(0, Math.round(now_ms - before.began_ms)) }
  }

  /** Drops all that is being said or waits. */
  drop(): void {
    this.#epoch++
    this.#waiting = []
    this.#loading = null
    this.#fed.clear()
    if (!this.#options.stream.closed) this.#options.stream.feedClear()
  }

  /** Handles a mark of the data plane. Returns true when it belongs to this speaker. */
  onMark(name: string): boolean {
    const mark = this.#read(name)
    if (!mark) return false
    const fed = mark.current ? this.#fed.get(mark.id) : undefined
    if (!fed) return true
    if (mark.edge === 'began') this.#began(fed, this.#options.clock.monotonic_ms())
    else {
      this.#fed.delete(mark.id)
      this.#heard.text += fed.saying.text
      this.#fill()
    }
    return true
  }

  /**
   * The data plane has stopped the feed after this mark. Returns what the caller had heard; null when something else is
   * being said by now, or nothing.
   */
  onCut(mark: string, played_ms: number): HeardTurn | null {
    return this.#read(mark)?.current ? this.cut(played_ms) : null
  }

  #read(mark: string): { readonly current: boolean; readonly id: number; readonly edge: string } | null {
    const { prefix } = this.#options
    if (!mark.startsWith(`${prefix}:`)) return null
    const [epoch, id, edge = ''] = mark.slice(prefix.length + 1).split(':')
    return { current: Number(epoch) === this.#epoch, id: Number(id), edge }
  }

  #began(fed: Fed, now_ms: number): void {
    fed.began_ms = now_ms
    const { turn } = fed.saying
    if (this.#heard.turn === turn) return
    this.#heard = { turn, text: '', began_ms: now_ms }
    this.#options.began(turn, fed.ready_ms)
  }

  get #first(): Saying | undefined {
    return this.#fed.values().next().value?.saying ?? this.#loading ?? this.#waiting[0]
  }

  #all(): Saying[] {
    const fed = [...this.#fed.values()].map(({ saying }) => saying)
    return [...fed, ...(this.#loading ? [this.#loading] : []), ...this.#waiting]
  }

  /** Loads and feeds the next saying while the current one plays. */
  #fill(): void {
    if (this.#loading || this.#fed.size >= AHEAD || this.#options.stream.closed) return
    const saying = this.#waiting[0]
    if (!saying) return
    this.#waiting.shift()
    this.#loading = saying
    const epoch = this.#epoch
    void this.#load(saying).then(loaded => {
      if (epoch !== this.#epoch) return
      this.#loading = null
      if ('refused' in loaded) this.#options.failed(loaded.detail)
      else {
        if (loaded.warning !== undefined) this.#options.warned(loaded.warning)
        this.#feed(saying, loaded)
      }
      this.#fill()
    })
  }

  #load(saying: Saying): Promise<Loaded> {
    return this.#options
      .load(saying.source)
      .catch((error: Error) => ({ refused: 'fetch_failed' as const, detail: error.message }))
  }

  #feed(saying: Saying, loaded: Extract<Loaded, { pieces: unknown }>): void {
    const { stream, prefix, clock } = this.#options
    if (stream.closed) return
    const pieces = loaded.pieces.flatMap(piece => (piece.kind === 'pcm' && piece.samples.length > 0 ? [piece] : []))
    if (pieces.length === 0) return
    const id = this.#next_id++
    const mark = (edge: 'began' | 'over') => stream.feedMark(`${prefix}:${this.#epoch}:${id}:${edge}`)
    const duration_ms = pieces.reduce((sum, { samples, rate_hz }) => sum + (samples.length * 1000) / rate_hz, 0)
    this.#fed.set(id, { saying, ready_ms: clock.monotonic_ms(), duration_ms, began_ms: null })
    mark('began')
    for (const { samples, rate_hz } of pieces)
      stream.feed(samples, rate_hz as SampleRate, includes(saying.interruptible, 'speech'))
    mark('over')
    if (saying.loop !== 1) this.#waiting.unshift({ ...saying, loop: saying.loop === 0 ? 0 : saying.loop - 1 })
  }
}

/** Returns the words of a saying that were heard in its first `played_ms`. */
function heardOf({ saying, duration_ms }: Fed, played_ms: number): string {
  const part = duration_ms === 0 ? 1 : played_ms / duration_ms
  if (part >= 1) return saying.text
  const characters = Math.max(0, Math.floor(saying.text.length * part))
  return saying.text.slice(0, saying.text.lastIndexOf(' ', characters) + 1)
}
