import type { DocumentTarget } from '../facts.ts'
import type { RecordingCallback } from './background.ts'

/** Commands for the audio and keys of this leg: playback, DTMF, speech recognition, recording. */
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
 * Plays the items in order to this leg only. `play_ended` follows after the last item or after `stop_play`. An item
 * that cannot be fetched or played is skipped and listed in `failures`.
 */
export interface Play {
  readonly type: 'play'
  readonly id: string
  readonly items: readonly PlayItem[]
}

/**
 * One item to play. `loop` is normalised to 1..1000. `text` is plain; `ssml` is `<speak>…</speak>`, or null when the
 * text has no tags.
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
 * Plays the ringback tone of `country` (null: the destination's country) until `stop_ring`, in place of a child's early
 * media. Sends 180 to an unanswered leg without early media.
 */
interface Ring {
  readonly type: 'ring'
  readonly country: string | null
}

interface StopRing {
  readonly type: 'stop_ring'
}

/** Echoes this leg's audio back until the leg or the run ends. */
interface StartEcho {
  readonly type: 'start_echo'
}

/** Reports each key of this leg's far end as `digit` until `digits_off`. At all other times keys are dropped. */
interface DigitsOn {
  readonly type: 'digits_on'
}

interface DigitsOff {
  readonly type: 'digits_off'
}

/** Sends DTMF (`0-9 A-D # * w W`) to the far end of this leg (`self`) or of a child. Answered by `digits_sent`. */
interface SendDigits {
  readonly type: 'send_digits'
  readonly id: string
  readonly leg: 'self' | string
  readonly digits: string
}

/**
 * Recognizes this leg's speech. Answered by `speech_started`, then by `speech_result` or `speech_failed`. An empty text
 * of `speech_result` is noise: the executor listens on, and the same events may follow again. It sends interim results
 * to `partial`.
 */
export interface Recognize {
  readonly type: 'recognize'
  readonly id: string
  readonly language: string
  readonly hints: readonly string[]
  readonly model: string | null
  readonly enhanced: boolean
  readonly profanity_filter: boolean
  /** Steady noise is reduced first. */
  readonly noise_suppression?: boolean
  /** Silence that ends an utterance; null: the engine decides (`auto`). */
  readonly speech_timeout_seconds: number | null
  readonly max_speech_seconds: number
  readonly partial: DocumentTarget | null
}

interface StopRecognize {
  readonly type: 'stop_recognize'
  readonly id: string
}

/**
 * Records this leg's speech in mono after a beep, until silence, a finishing key, the maximum length, `stop_record` or
 * the end of the leg. `record_ended` reports that the file is complete. The executor creates the row (source
 * `RecordVerb`) and sends the status callbacks. With `transcribe` and an engine it also sends the transcription
 * callback.
 */
export interface RecordLeg {
  readonly type: 'record'
  readonly id: string
  readonly beep: boolean
  /** Seconds of silence that end the recording; 0 turns this off. */
  readonly silence_seconds: number
  /** Keys that end the recording; empty for none. */
  readonly finish_on_key: string
  readonly max_seconds: number
  readonly trim: boolean
  readonly callback: RecordingCallback | null
  readonly transcribe: { readonly callback: DocumentTarget | null } | null
}

/** Ends a `record` at once and keeps the audio recorded so far. */
interface StopRecord {
  readonly type: 'stop_record'
  readonly id: string
}
