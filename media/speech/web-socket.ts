import type { WebSocket } from 'ws'
import { toUlaw } from '../files/pcm.ts'
import { type ConnectWebSocket, sendText } from '../forks/connect.ts'
import {
  RATE_HZ,
  type RecognitionListener,
  type RecognitionSession,
  type RecognitionSettings,
  type Recognizer,
  readResult,
  type Track,
} from './recognizer.ts'

/**
 * Recognises speech by a WebSocket engine. The engine receives the frames of a media stream (voice-compat.md §12.5),
 * with the settings in `start.recognition`. It sends `{"event":"speech_started","track"}`,
 * `{"event":"transcript","track","transcript","confidence","final","language"}` and `{"event":"error","detail"}`.
 */
export function webSocketRecognizer(url: string, connect: ConnectWebSocket): Recognizer {
  return { open: (settings, listener) => new Conversation(url, connect, settings, listener) }
}

/** Frames that may wait for the connection or a slow engine: five seconds of both tracks in 20 ms frames. */
const MAX_QUEUED = 500
const MAX_UNSENT_BYTES = 64 * 1024

class Conversation implements RecognitionSession {
  readonly #settings: RecognitionSettings
  readonly #listener: RecognitionListener
  readonly #abort = new AbortController()
  readonly #queue: string[] = []
  #socket: WebSocket | null = null
  #sequence = 1
  #finishing = false
  #over = false

  constructor(url: string, connect: ConnectWebSocket, settings: RecognitionSettings, listener: RecognitionListener) {
    this.#settings = settings
    this.#listener = listener
    connect(url, this.#abort.signal).then(
      connected => {
        if ('socket' in connected) this.#connected(connected.socket)
        else this.#end(`the recognizer cannot be reached: ${connected.detail}`)
      },
      (error: Error) => this.#end(error.message),
    )
  }

  audio(track: Track, samples: Int16Array, offset_ms: number): void {
    if (this.#over) return
    const payload = toUlaw(samples).toString('base64')
    this.#queue.push(this.#frame('media', { media: { track, timestamp: String(Math.round(offset_ms)), payload } }))
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift()
    this.#flush()
  }

  finish(): void {
    this.#finishing = true
    this.#sayStop()
  }

  stop(): void {
    if (!this.#over && !this.#finishing) this.#sayStop()
    this.#end(null)
  }

  #sayStop(): void {
    if (!this.#socket) return
    this.#flush(Number.POSITIVE_INFINITY)
    this.#socket.send(this.#frame('stop', { stop: {} }))
  }

  #connected(socket: WebSocket): void {
    if (this.#over) {
      socket.terminate()
      return
    }
    const { recognize_id, account_sid, call_sid, tracks, ...recognition } = this.#settings
    socket.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }))
    socket.send(
      this.#frame('start', {
        start: {
          accountSid: account_sid,
          callSid: call_sid,
          streamSid: recognize_id,
          tracks,
          mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: RATE_HZ, channels: 1 },
          recognition,
        },
      }),
    )
    this.#socket = socket
    socket.on('message', (data, binary) => this.#receive(binary ? '' : data.toString()))
    socket.on('error', error => this.#end(error.message))
    socket.on('close', code => this.#end(this.#finishing ? null : `the recognizer closed the connection with ${code}`))
    if (this.#finishing) this.#sayStop()
    else this.#flush()
  }

  #flush(most_unsent = MAX_UNSENT_BYTES): void {
    while (this.#socket && this.#queue.length > 0 && this.#socket.bufferedAmount < most_unsent)
      sendText(this.#socket, this.#queue.shift() ?? '')
  }

  #receive(text: string): void {
    if (this.#over) return
    let frame: Record<string, unknown>
    try {
      frame = Object(JSON.parse(text))
    } catch {
      this.#end('the recognizer sent a frame that is not JSON')
      return
    }
    const track = frame['track'] === 'outbound' ? 'outbound' : (this.#settings.tracks[0] ?? 'inbound')
    if (frame['event'] === 'speech_started') this.#listener.started(track)
    else if (frame['event'] === 'error') this.#end(String(frame['detail'] ?? 'the recognizer failed').slice(0, 300))
    else if (frame['event'] === 'transcript') {
      const result = readResult(frame, track)
      if (result) this.#listener.heard(result)
    }
  }

  #frame(event: string, fields: object): string {
    return JSON.stringify({
      event,
      sequenceNumber: String(this.#sequence++),
      streamSid: this.#settings.recognize_id,
      ...fields,
    })
  }

  #end(fault: string | null): void {
    if (this.#over) return
    this.#over = true
    this.#abort.abort()
    this.#socket?.close()
    this.#listener.ended(fault)
  }
}
