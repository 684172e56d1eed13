import type { WebSocket } from 'ws'
import type { ConnectWebSocket } from '../forks/connect.ts'
import {
  parsed,
  type RecognitionListener,
  type RecognitionSession,
  type RecognitionSettings,
  type Recognizer,
  type Track,
} from './recognizer.ts'

interface Provider {
  /** The API's base, such as wss://api.deepgram.com. */
  readonly url: string
  readonly api_key: string
  readonly model: string | null
}

const MODEL = 'nova-2-phonecall'
/** Five seconds of 20 ms frames may wait for the connection. */
const MAX_QUEUED = 250
const MAX_UNSENT_BYTES = 64 * 1024
/** The pause that ends an utterance when the document leaves the choice to the engine. */
const AUTO_SILENCE_MS = 500
/** An utterance whose pause is never found is cut at this length, which also limits what is kept of it. */
const MAX_UTTERANCE_CHARACTERS = 2048
const MAX_TEXT = 4096

/**
 * Recognises speech by Deepgram's live API, as its public documentation describes it: `GET {url}/v1/listen` upgraded to
 * a WebSocket, linear PCM in binary frames, `Results` in JSON. Each track has a connection of its own.
 */
export const deepgramRecognizer = (provider: Provider, connect: ConnectWebSocket): Recognizer => ({
  open: (settings, listener) => new Conversations(provider, connect, settings, listener),
})

class Conversations implements RecognitionSession {
  readonly #tracks = new Map<Track, Conversation>()
  readonly #listener: RecognitionListener
  #over = false

  constructor(
    provider: Provider,
    connect: ConnectWebSocket,
    settings: RecognitionSettings,
    listener: RecognitionListener,
  ) {
    this.#listener = listener
    for (const track of settings.tracks)
      this.#tracks.set(
        track,
        new Conversation(provider, connect, settings, track, {
          ...listener,
          started: () => !this.#over && listener.started(track),
          heard: result => !this.#over && listener.heard(result),
          ended: fault => this.#end(fault),
        }),
      )
  }

  audio(track: Track, samples: Int16Array): void {
    this.#tracks.get(track)?.audio(samples)
  }

  stop(): void {
    this.#end(null)
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    for (const conversation of this.#tracks.values()) conversation.close()
    this.#listener.ended(fault)
  }
}

class Conversation {
  readonly #settings: RecognitionSettings
  readonly #track: Track
  readonly #listener: RecognitionListener
  readonly #abort = new AbortController()
  readonly #queue: Buffer[] = []
  #socket: WebSocket | null = null
  /** The final pieces of the utterance that goes on. */
  #said: Said = NOTHING

  constructor(
    { url, api_key, model }: Provider,
    connect: ConnectWebSocket,
    settings: RecognitionSettings,
    track: Track,
    listener: RecognitionListener,
  ) {
    this.#settings = settings
    this.#track = track
    this.#listener = listener
    const target = new URL('/v1/listen', url)
    const query = {
      model: settings.model ?? model ?? MODEL,
      language: settings.language,
      encoding: 'linear16',
      sample_rate: '8000',
      channels: '1',
      interim_results: String(settings.partial),
      vad_events: 'true',
      punctuate: String(settings.punctuation),
      profanity_filter: String(settings.profanity_filter),
      endpointing: String(settings.silence_ms ?? AUTO_SILENCE_MS),
    }
    for (const [name, value] of Object.entries(query)) target.searchParams.set(name, value)
    for (const hint of settings.hints) target.searchParams.append('keywords', hint)
    connect(target.href, this.#abort.signal, { Authorization: `Token ${api_key}` }).then(
      connected => {
        if ('socket' in connected) this.#connected(connected.socket)
        else listener.ended(`the recognizer cannot be reached: ${connected.detail}`)
      },
      (error: Error) => listener.ended(error.message),
    )
  }

  audio(samples: Int16Array): void {
    this.#queue.push(Buffer.from(samples.buffer.slice(samples.byteOffset, samples.byteOffset + samples.byteLength)))
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift()
    this.#flush()
  }

  close(): void {
    this.#abort.abort()
    if (this.#socket?.readyState === this.#socket?.OPEN) this.#socket?.send('{"type":"CloseStream"}')
    this.#socket?.close()
  }

  #connected(socket: WebSocket): void {
    if (this.#abort.signal.aborted) {
      socket.terminate()
      return
    }
    this.#socket = socket
    socket.on('message', (data, binary) => !binary && this.#receive(data.toString()))
    socket.on('error', error => this.#listener.ended(error.message))
    socket.on('close', code => this.#listener.ended(`the recognizer closed the connection with ${code}`))
    this.#flush()
  }

  #flush(): void {
    while (this.#socket && this.#queue.length > 0 && this.#socket.bufferedAmount < MAX_UNSENT_BYTES)
      this.#socket.send(this.#queue.shift() ?? '')
  }

  #receive(text: string): void {
    const message = parsed(text) as Partial<Message> | null
    if (message?.type === 'SpeechStarted') this.#listener.started(this.#track)
    if (message?.type !== 'Results') return
    const [best] = message.channel?.alternatives ?? []
    const said = joined(this.#said, String(best?.transcript ?? '').trim(), Number(best?.confidence ?? 0))
    if (message.is_final) this.#said = said
    if (said.pieces === 0) return
    const cut = message.is_final === true && said.text.length >= MAX_UTTERANCE_CHARACTERS
    const final = message.speech_final === true || cut
    if (final) this.#said = NOTHING
    const confidence = said.confidence / said.pieces
    this.#listener.heard({ track: this.#track, text: said.text, confidence, final, language: this.#settings.language })
  }
}

/** What was said of an utterance; `confidence` is the sum over its pieces. */
interface Said {
  readonly text: string
  readonly pieces: number
  readonly confidence: number
}

const NOTHING: Said = { text: '', pieces: 0, confidence: 0 }

function joined(said: Said, text: string, confidence: number): Said {
  if (text === '') return said
  const both = said.pieces === 0 ? text : `${said.text} ${text}`
  return { text: both.slice(0, MAX_TEXT), pieces: said.pieces + 1, confidence: said.confidence + confidence }
}

/** What is read of a message. */
interface Message {
  readonly type: string
  readonly is_final: boolean
  /** The pause after the utterance has been found. */
  readonly speech_final: boolean
  readonly channel: { readonly alternatives: readonly { readonly transcript: string; readonly confidence: number }[] }
}
