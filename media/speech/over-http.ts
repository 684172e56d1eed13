import type { HttpClient } from '../../core/runtime/http/index.ts'
import {
  RATE_HZ,
  type RecognitionListener,
  type RecognitionSession,
  type RecognitionSettings,
  type Recognizer,
  readResult,
  type Track,
} from './recognizer.ts'
import { Utterances } from './utterances.ts'

/**
 * Recognises speech by an HTTP engine. This side finds each utterance by its level and posts it as a WAV file of 8 kHz,
 * 16 bits, with the settings in the query. The answer is JSON: `{"transcript", "confidence", "language"}`.
 */
export function httpRecognizer(url: string, http: Pick<HttpClient, 'request'>): Recognizer {
  return { open: (settings, listener) => new Listening(url, http, settings, listener) }
}

const TIMEOUT_MS = 15_000
/** The silence that ends an utterance when the document leaves the choice to the engine. */
const AUTO_SILENCE_MS = 1000
const MAX_FAILURES = 3

class Listening implements RecognitionSession {
  readonly #url: string
  readonly #http: Pick<HttpClient, 'request'>
  readonly #settings: RecognitionSettings
  readonly #listener: RecognitionListener
  readonly #utterances = new Map<Track, Utterances>()
  readonly #abort = new AbortController()
  /** Requests run in sequence, so that results keep the order of the utterances. */
  #asking: Promise<void> = Promise.resolve()
  #failures = 0
  #over = false

  constructor(
    url: string,
    http: Pick<HttpClient, 'request'>,
    settings: RecognitionSettings,
    listener: RecognitionListener,
  ) {
    this.#url = url
    this.#http = http
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

  stop(): void {
    this.#end(null)
  }

  #ask(track: Track, samples: Int16Array): void {
    this.#asking = this.#asking.then(() => this.#post(track, samples))
  }

  async #post(track: Track, samples: Int16Array): Promise<void> {
    if (this.#over) return
    const url = new URL(this.#url)
    const { language, hints, model, enhanced, profanity_filter, punctuation, call_sid } = this.#settings
    const options = { language, enhanced, profanity_filter, punctuation, track, call_sid }
    for (const [name, value] of Object.entries(options)) url.searchParams.set(name, String(value))
    if (hints.length > 0) url.searchParams.set('hints', hints.join(','))
    if (model !== null) url.searchParams.set('model', model)
    const reply = await this.#http.request({
      url: url.href,
      method: 'POST',
      headers: { 'Content-Type': 'audio/wav', Accept: 'application/json' },
      body: wavFile(samples),
      total_timeout_ms: TIMEOUT_MS,
      signal: this.#abort.signal,
    })
    if (this.#over) return
    const result =
      reply.ok && reply.status >= 200 && reply.status < 300 ? readResult(parsed(reply.body.toString()), track) : null
    if (result) {
      this.#failures = 0
      this.#listener.heard({ ...result, final: true })
      return
    }
    const fault = reply.ok ? `the recognizer answered ${reply.status} without a transcript` : reply.detail
    // With several tracks, a failed utterance is skipped until MAX_FAILURES in a row. With one track, the first failure
    // ends the recognition.
    if (++this.#failures >= MAX_FAILURES || this.#settings.tracks.length === 1) this.#end(fault)
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    this.#abort.abort()
    this.#listener.ended(fault)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Encodes a WAV file of 16-bit PCM with one channel. */
function wavFile(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(44 + samples.length * 2)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8, 'latin1')
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(RATE_HZ, 24)
  bytes.writeUInt32LE(RATE_HZ * 2, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36, 'latin1')
  bytes.writeUInt32LE(samples.length * 2, 40)
  for (const [index, sample] of samples.entries()) bytes.writeInt16LE(sample, 44 + index * 2)
  return bytes
}
