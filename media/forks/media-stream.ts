import type { WebSocket } from 'ws'
import type { Clock } from '../../core/runtime/clock.ts'
import type { EngineEvent, Stream } from '../../native/index.ts'
import { fromUlaw, toUlaw } from '../files/pcm.ts'
import type { EventFields, MethodParams } from '../protocol/schema.ts'
import { type ConnectWebSocket, sendText } from './connect.ts'

/**
 * A media stream in the compatible form (voice-compat.md §12.5): JSON text frames with µ-law at 8 kHz, in both
 * directions on request.
 */

export type ForkRequest = MethodParams<'fork.start'>
type Ended = EventFields<'fork.ended'>

interface ForkOptions {
  readonly request: ForkRequest
  readonly stream: Stream
  readonly clock: Clock
  readonly tap_prefix: string
  readonly connect: ConnectWebSocket
  readonly started: () => void
  readonly warned: (code: number, detail: string) => void
  readonly ended: (reason: Ended['reason'], error_code: number | null, detail: string) => void
}

type Track = 'inbound' | 'outbound'

const CHUNK_MS = 20
const RATE_HZ = 8000
/** Five seconds of 20 ms frames on both tracks. Beyond that, the oldest frames are dropped. */
const MAX_QUEUED = 2 * (5000 / CHUNK_MS)
const MAX_UNSENT_BYTES = 16 * 1024
/** How far ahead of its playing the server may send audio. */
const MAX_AHEAD_MS = 600_000
const CODES = { url_refused: 31_902, timeout: 31_901, refused: 31_902, tls: 31_910, handshake: 31_920 } as const
const BACKLOG = 31_930
const DISCARDED = 31_931
const FRAME_NOT_JSON = 31_950
const FRAME_UNKNOWN = 31_951

export class MediaStream {
  readonly #options: ForkOptions
  readonly #abort = new AbortController()
  readonly #queue: string[] = []
  readonly #chunks: Record<Track, number> = { inbound: 0, outbound: 0 }
  readonly #taps = new Map<string, Track>()
  readonly #warned = new Set<number>()
  readonly #mark_prefix: string
  #socket: WebSocket | null = null
  #sequence = 1
  /** When the server's audio so far will have been played, by the monotonic clock. */
  #played_ms = 0
  #over = false

  constructor(options: ForkOptions) {
    this.#options = options
    this.#mark_prefix = `${options.tap_prefix}:`
    const { tracks } = options.request
    if (tracks !== 'outbound') this.#taps.set(`${options.tap_prefix}i`, 'inbound')
    if (tracks !== 'inbound') this.#taps.set(`${options.tap_prefix}o`, 'outbound')
    options.connect(options.request.url, this.#abort.signal, options.request.headers ?? {}).then(
      connected => {
        if ('socket' in connected) this.#connected(connected.socket)
        else this.#end('failed', CODES[connected.refused], connected.detail)
      },
      (error: Error) => this.#end('failed', CODES.refused, error.message),
    )
  }

  /** Sends `stop` to the server and closes. `reason` goes into the `fork.ended` event. */
  stop(reason: 'stopped' | 'leg_closed'): void {
    const { account_sid, call_sid, stream_sid } = this.#options.request
    if (this.#socket && !this.#over) {
      this.#flush(Number.POSITIVE_INFINITY)
      this.#send({
        event: 'stop',
        ...this.#head(),
        streamSid: stream_sid,
        stop: { accountSid: account_sid, callSid: call_sid },
      })
    }
    this.#end(reason, null, '')
  }

  /** Handles an event of the data plane. Returns true when it belongs to this stream. */
  onNative(event: EngineEvent): boolean {
    if (event.type === 'tap') {
      const track = this.#taps.get(event.tap_id)
      if (track) this.#media(track, event.samples, event.offset_ms)
      return track !== undefined
    }
    if (event.type === 'mark' && event.name.startsWith(this.#mark_prefix)) {
      this.#queueFrame({ event: 'mark', mark: { name: event.name.slice(this.#mark_prefix.length) } })
      return true
    }
    return false
  }

  key(digit: string): void {
    if ([...this.#taps.values()].includes('inbound'))
      this.#queueFrame({ event: 'dtmf', dtmf: { track: 'inbound_track', digit } })
  }

  #connected(socket: WebSocket): void {
    if (this.#over) {
      socket.terminate()
      return
    }
    this.#socket = socket
    const { request, stream } = this.#options
    const { stream_sid, account_sid, call_sid, parameters } = request
    this.#send({ event: 'connected', protocol: 'Call', version: '1.0.0' })
    this.#send({
      event: 'start',
      ...this.#head(),
      streamSid: stream_sid,
      start: {
        accountSid: account_sid,
        streamSid: stream_sid,
        callSid: call_sid,
        tracks: [...this.#taps.values()],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: RATE_HZ, channels: 1 },
        customParameters: parameters,
      },
    })
    socket.on('message', (data, binary) => this.#receive(binary ? null : data.toString()))
    socket.on('error', error => this.#end('closed_by_server', null, error.message))
    socket.on('close', code => this.#end('closed_by_server', null, `closed with ${code}`))
    for (const [tap_id, track] of this.#taps) {
      stream.tap({ tap_id, what: track === 'inbound' ? 'received' : 'sent', rate_hz: RATE_HZ, chunk_ms: CHUNK_MS })
    }
    this.#options.started()
  }

  #media(track: Track, samples: Int16Array, offset_ms: number): void {
    const payload = toUlaw(samples).toString('base64')
    const chunk = String(++this.#chunks[track])
    this.#queueFrame({ event: 'media', media: { track, chunk, timestamp: String(Math.round(offset_ms)), payload } })
  }

  /** Queues a frame. It gets its sequence number now, so that the server notices dropped frames. */
  #queueFrame(frame: { event: string; [field: string]: unknown }): void {
    if (this.#over) return
    const { event, ...fields } = frame
    const { stream_sid } = this.#options.request
    this.#queue.push(JSON.stringify({ event, ...this.#head(), streamSid: stream_sid, ...fields }))
    if (this.#queue.length > MAX_QUEUED) {
      this.#queue.shift()
      this.#warn(BACKLOG, 'the server reads too slowly: the oldest media is dropped')
    }
    this.#flush(MAX_UNSENT_BYTES)
  }

  #flush(max_unsent_bytes: number): void {
    while (this.#socket && this.#queue.length > 0 && this.#socket.bufferedAmount < max_unsent_bytes)
      sendText(this.#socket, this.#queue.shift() ?? '')
  }

  #receive(text: string | null): void {
    const { bidirectional, stream_sid } = this.#options.request
    const frame = text === null ? null : parseFrame(text)
    const ours = frame?.['streamSid'] === undefined || frame['streamSid'] === stream_sid
    const media = frame?.['media'] as { payload?: unknown } | undefined
    const mark = frame?.['mark'] as { name?: unknown } | undefined
    const { stream } = this.#options
    if (!frame) this.#warn(FRAME_NOT_JSON, 'the server sent a frame that is not JSON')
    else if (!bidirectional || !ours)
      this.#warn(FRAME_UNKNOWN, 'the server sent a frame that this stream does not take')
    else if (frame['event'] === 'media' && typeof media?.payload === 'string') this.#play(media.payload)
    else if (frame['event'] === 'mark' && typeof mark?.name === 'string')
      stream.feedMark(`${this.#mark_prefix}${mark.name.slice(0, 200)}`)
    else if (frame['event'] === 'clear') this.#clear()
    else this.#warn(FRAME_UNKNOWN, `the server sent an unknown event ${String(frame['event']).slice(0, 60)}`)
  }

  #play(payload: string): void {
    const samples = fromUlaw(Buffer.from(payload, 'base64'))
    if (samples.length === 0) return
    const { stream, clock } = this.#options
    const now_ms = clock.monotonic_ms()
    const from_ms = Math.max(now_ms, this.#played_ms)
    if (from_ms - now_ms >= MAX_AHEAD_MS) {
      this.#warn(DISCARDED, 'the server sent more than ten minutes of audio ahead: the rest is dropped')
      return
    }
    this.#played_ms = from_ms + (samples.length * 1000) / RATE_HZ
    stream.feed(samples, RATE_HZ)
  }

  #clear(): void {
    this.#played_ms = 0
    this.#options.stream.feedClear()
  }

  #head(): { sequenceNumber: string } {
    return { sequenceNumber: String(this.#sequence++) }
  }

  #send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame))
  }

  #warn(code: number, detail: string): void {
    if (this.#over || this.#warned.has(code)) return
    this.#warned.add(code)
    this.#options.warned(code, detail)
  }

  #end(reason: Ended['reason'], error_code: number | null, detail: string): void {
    if (this.#over) return
    this.#over = true
    this.#abort.abort()
    const { stream } = this.#options
    if (!stream.closed && this.#socket) {
      for (const tap_id of this.#taps.keys()) stream.untap(tap_id)
      if (this.#options.request.bidirectional) stream.feedClear()
    }
    this.#socket?.close()
    this.#options.ended(reason, error_code, detail)
  }
}

function parseFrame(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}
