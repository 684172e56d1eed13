import type { Target } from '../facts.ts'
import type { RecordingCallback } from './background.ts'

/** Commands of what this leg hears and says: sound, keys, speech, and what is recorded of it. */
export type SoundCommand =
  | Play
  | StopPlay
  | Ring
  | StopRing
  | StartEcho
  | DigitsOn
  | DigitsOff
  | SendDigits
  | Recognize
  | StopRecognize
  | RecordLeg
  | StopRecord

/**
 * Play the items one after another to this leg (to the caller only). Answered by `play_ended` when all are through, by
 * themselves or after `stop_play`. An item that cannot be had is skipped, and named in `failures`.
 */
export interface Play {
  readonly type: 'play'
  readonly id: string
  readonly items: readonly PlayItem[]
}

/**
 * `loop` is 1..1000, already normalised. Text is plain; `ssml` is `<speak>…</speak>`, null when the text has no
 * tags.
 */
export type PlayItem =
  | { readonly kind: 'url'; readonly url: string; readonly loop: number }
  | {
      readonly kind: 'speech'
      readonly text: string
      readonly ssml: string | null
      readonly voice: string
      readonly language: string
      readonly loop: number
    }
  | { readonly kind: 'silence'; readonly ms: number }

interface StopPlay {
  readonly type: 'stop_play'
  readonly id: string
}

/**
 * Answered leg: play ring tone of `country` (null: of the destination's) until `stop_ring`. Unanswered leg: send
 * 180.
 */
interface Ring {
  readonly type: 'ring'
  readonly country: string | null
}

interface StopRing {
  readonly type: 'stop_ring'
}

/** Send this leg's audio back to it until it ends or the run is done. */
interface StartEcho {
  readonly type: 'start_echo'
}

/** From now on each key of this leg's far end is reported by `digit`; before and between, keys are dropped. */
interface DigitsOn {
  readonly type: 'digits_on'
}

interface DigitsOff {
  readonly type: 'digits_off'
}

/** DTMF towards the far end of this leg (`self`) or of a child; `0-9 A-D # * w W`. Answered by `digits_sent`. */
interface SendDigits {
  readonly type: 'send_digits'
  readonly id: string
  readonly leg: 'self' | string
  readonly digits: string
}

/**
 * Recognise what this leg says. Answered by at most one `speech_started`, then one of `speech_result` (an empty text is
 * "nothing heard") and `speech_failed`. Interim results go to `partial` by the executor itself.
 */
export interface Recognize {
  readonly type: 'recognize'
  readonly id: string
  readonly language: string
  readonly hints: readonly string[]
  readonly model: string | null
  readonly enhanced: boolean
  readonly profanity_filter: boolean
  /** Silence that ends an utterance; null: the engine decides (`auto`). */
  readonly speech_timeout_seconds: number | null
  readonly max_speech_seconds: number
  readonly partial: Target | null
}

interface StopRecognize {
  readonly type: 'stop_recognize'
  readonly id: string
}

/**
 * Record what this leg says (mono): beep, then until silence, a key, the length, `stop_record` or the end of the leg.
 * Answered by `record_ended` when the file is complete. The executor makes the row (source `RecordVerb`), sends the
 * status callbacks, and, with `transcribe` and an engine, the transcription callback.
 */
export interface RecordLeg {
  readonly type: 'record'
  readonly id: string
  readonly beep: boolean
  /** Seconds of silence that end it; 0 is off. */
  readonly silence_seconds: number
  /** Keys that end it; empty is none. */
  readonly finish_on_key: string
  readonly max_seconds: number
  readonly trim: boolean
  readonly callback: RecordingCallback | null
  readonly transcribe: { readonly callback: Target | null } | null
}

/** Ends a `record` at once; what was recorded is kept. */
interface StopRecord {
  readonly type: 'stop_record'
  readonly id: string
}
