/** The port of speech recognition (docs/speech.md). Its adapters are chosen in index.ts. */

export type Track = 'inbound' | 'outbound'

/** The settings that an engine gets before any audio. */
export interface RecognitionSettings {
  readonly recognize_id: string
  readonly account_sid: string
  readonly call_sid: string
  /** A BCP 47 tag. */
  readonly language: string
  readonly hints: readonly string[]
  readonly model: string | null
  readonly enhanced: boolean
  readonly profanity_filter: boolean
  readonly punctuation: boolean
  /** Also report results that may still change. */
  readonly partial: boolean
  /** The silence that ends an utterance. Null lets the engine decide. */
  readonly silence_ms: number | null
  /** Longer utterances are cut at this length. */
  readonly max_speech_ms: number
  readonly tracks: readonly Track[]
}

export interface Result {
  readonly track: Track
  readonly text: string
  /** 0 to 1. */
  readonly confidence: number
  readonly final: boolean
  readonly language: string | null
}

export interface RecognitionListener {
  /** Speech began. */
  started(track: Track): void
  heard(result: Result): void
  /** The engine serves otherwise than it was asked to. One sentence. */
  warned(detail: string): void
  /** No further result follows. `fault` is null when the recognition was stopped. */
  ended(fault: string | null): void
}

export interface RecognitionSession {
  /** Takes 16-bit samples at 8 kHz, in order. `offset_ms` counts from the beginning. */
  audio(track: Track, samples: Int16Array, offset_ms: number): void
  /** Takes no more audio. The results of what it has follow, and then `ended`. */
  finish(): void
  stop(): void
}

export interface Recognizer {
  open(settings: RecognitionSettings, listener: RecognitionListener): RecognitionSession
}

export const RATE_HZ = 8000

const MAX_TEXT = 4096

/** Parses an engine's JSON result; null when it has no transcript. */
export function readResult(value: unknown, track: Track): Result | null {
  if (typeof value !== 'object' || value === null) return null
  const fields = value as Record<string, unknown>
  const text = fields['transcript'] ?? fields['text']
  if (typeof text !== 'string') return null
  const confidence = Number(fields['confidence'] ?? 0)
  const { language } = fields
  return {
    track: fields['track'] === 'outbound' ? 'outbound' : track,
    text: text.trim().slice(0, MAX_TEXT),
    confidence: Number.isFinite(confidence) ? Math.min(1, Math.max(0, confidence)) : 0,
    final: fields['final'] !== false,
    language: typeof language === 'string' ? language.slice(0, 35) : null,
  }
}

/** Parses JSON; null when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
