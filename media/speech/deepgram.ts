import type { WebSocket } from 'ws'
import type { ConnectWebSocket } from '../forks/connect.ts'
import { askedModel, unknownModel } from './models.ts'
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
/** Deepgram takes 100 hints, and 500 tokens of those for Nova-3. A token has about three bytes or more. */
const MAX_HINTS = 100
const MAX_HINT_BYTES = 1500
const CLOSE_STREAM = '{"type":"CloseStream"}'

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
          ended: fault => (fault === null ? this.#finished(track) : this.#end(fault)),
        }),
      )
  }

  audio(track: Track, samples: Int16Array): void {
    this.#tracks.get(track)?.audio(samples)
  }

  finish(): void {
    for (const conversation of this.#tracks.values()) conversation.finish()
  }

  stop(): void {
    this.#end(null)
  }

  #finished(track: Track): void {
    this.#tracks.delete(track)
    if (this.#tracks.size === 0) this.#end(null)
  }

  #end(fault: string | null): void {
    if (this.#over) return
    for (const conversation of this.#tracks.values()) conversation.close()
    this.#over = true
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
  /** Speech was reported whose end has not come. It may be noise. */
  #began = false
  /** The final pieces of the utterance that goes on. */
  #said: Said = NOTHING
  #finishing = false

  constructor(
    provider: Provider,
    connect: ConnectWebSocket,
    settings: RecognitionSettings,
    track: Track,
    listener: RecognitionListener,
  ) {
    this.#settings = settings
    this.#track = track
    this.#listener = listener
    this.#connect(provider, connect).catch((error: Error) => listener.ended(error.message))
  }

  audio(samples: Int16Array): void {
    this.#queue.push(Buffer.from(samples.buffer.slice(samples.byteOffset, samples.byteOffset + samples.byteLength)))
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift()
    this.#flush()
  }

  /** Sends what waits. Deepgram answers with the rest of its results and closes. */
  finish(): void {
    this.#finishing = true
    if (!this.#socket) return
    this.#flush(Number.POSITIVE_INFINITY)
    this.#socket.send(CLOSE_STREAM)
  }

  close(): void {
    this.#abort.abort()
    if (this.#finishing) this.#tellRest()
    else if (this.#socket?.readyState === this.#socket?.OPEN) this.#socket?.send(CLOSE_STREAM)
    this.#socket?.close()
  }

  async #connect({ url, api_key, model }: Provider, connect: ConnectWebSocket): Promise<void> {
    const usual = model ?? MODEL
    const asked = askedModel(this.#settings.model, 'deepgram')
    const wanted = asked.model ?? usual
    const ask = (name: string) =>
      connect(addressOf(url, name, this.#settings), this.#abort.signal, { Authorization: `Token ${api_key}` })
    let warning = asked.warning
    let connected = await ask(wanted)
    if ('refused' in connected && connected.refused === 'handshake' && wanted !== usual) {
      warning = unknownModel(wanted)
      connected = await ask(usual)
    }
    if (!('socket' in connected)) {
      this.#listener.ended(`the recognizer cannot be reached: ${connected.detail}`)
      return
    }
    this.#connected(connected.socket)
    if (warning !== undefined) this.#listener.warned(warning)
  }

  #connected(socket: WebSocket): void {
    if (this.#abort.signal.aborted) {
      socket.terminate()
      return
    }
    this.#socket = socket
    socket.on('message', (data, binary) => !binary && this.#receive(data.toString()))
    socket.on('error', error => this.#closed(error.message))
    socket.on('close', code => this.#closed(`the recognizer closed the connection with ${code}`))
    if (this.#finishing) this.finish()
    else this.#flush()
  }

  #closed(detail: string): void {
    if (this.#finishing) this.#tellRest()
    this.#listener.ended(this.#finishing ? null : detail)
  }

  #flush(most_unsent = MAX_UNSENT_BYTES): void {
    while (this.#socket && this.#queue.length > 0 && this.#socket.bufferedAmount < most_unsent)
      this.#socket.send(this.#queue.shift() ?? '')
  }

  #receive(text: string): void {
    const message = parsed(text) as Partial<Message> | null
    if (message?.type === 'SpeechStarted') {
      this.#began = true
      this.#listener.started(this.#track)
    }
    if (message?.type !== 'Results') return
    const [best] = message.channel?.alternatives ?? []
    const said = joined(this.#said, String(best?.transcript ?? '').trim(), Number(best?.confidence ?? 0))
    if (message.is_final) this.#said = said
    const over = message.speech_final === true
    // A Gather that was told of the beginning needs the end, also that of noise.
    if (said.pieces === 0 && !(over && this.#began)) return
    const cut = message.is_final === true && said.text.length >= MAX_UTTERANCE_CHARACTERS
    this.#tell(said, over || cut)
  }

  #tell(said: Said, final: boolean): void {
    if (final) {
      this.#said = NOTHING
      this.#began = false
    }
    const confidence = said.pieces === 0 ? 0 : said.confidence / said.pieces
    this.#listener.heard({ track: this.#track, text: said.text, confidence, final, language: this.#settings.language })
  }

  /** Tells the pieces of an utterance whose end will not come. */
  #tellRest(): void {
    if (this.#said.pieces > 0) this.#tell(this.#said, true)
  }
}

function addressOf(url: string, model: string, settings: RecognitionSettings): string {
  const target = new URL('/v1/listen', url)
  const query = {
    model,
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
  // Nova-3 refuses keywords.
  const name = /^nova-3(-|$)/.test(model) ? 'keyterm' : 'keywords'
  let bytes = 0
  for (const hint of settings.hints.slice(0, MAX_HINTS)) {
    bytes += Buffer.byteLength(hint)
    if (bytes <= MAX_HINT_BYTES) target.searchParams.append(name, hint)
  }
  return target.href
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
