import { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { systemClock, type Timer } from '../../core/runtime/clock.ts'
import { frameReader, frameWriter } from './frames.ts'
import {
  EVENTS,
  type EventFields,
  type EventName,
  type MethodName,
  type MethodParams,
  type MethodRefusal,
  type MethodResult,
} from './schema.ts'

/** A request that the worker refused, or that could not be sent to it (`media_unavailable`). */
export class MediaRefusal extends Error {
  readonly reason: string
  readonly detail: string
  constructor(reason: string, detail: string) {
    super(`${reason}: ${detail}`)
    this.name = 'MediaRefusal'
    this.reason = reason
    this.detail = detail
  }
  /** Reports whether this is the reason. The type parameter limits it to the reasons that a method declares. */
  is<M extends MethodName>(reason: MethodRefusal<M>): boolean {
    return this.reason === reason
  }
}

export type MediaClientEvents = { [E in EventName]: [EventFields<E>] } & {
  /** Connected and greeted. All sessions of an earlier connection have ended by then. */
  up: [MethodResult<'hello'>]
  /** The connection is lost. The worker closes every session of this client. */
  down: [{ detail: string }]
}

export interface MediaClient {
  /** @throws MediaRefusal */
  request<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>>
  on<E extends keyof MediaClientEvents>(event: E, listener: (...args: MediaClientEvents[E]) => void): void
  once<E extends keyof MediaClientEvents>(event: E, listener: (...args: MediaClientEvents[E]) => void): void
  off<E extends keyof MediaClientEvents>(event: E, listener: (...args: MediaClientEvents[E]) => void): void
  readonly connected: boolean
  /** Closes the connection for good. The worker then closes this client's sessions. */
  close(): void
}

/** The part of a pino logger that the client uses. */
interface ClientLog {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}

interface ConnectOptions {
  /** The path of the worker's Unix socket. */
  path: string
  log: ClientLog
  /** The name of this process in the worker's log. */
  client?: string
  /** A request without a reply is rejected after this time. No method of the worker waits for the network. */
  request_timeout_ms?: number
  /** The first and the longest pause before connecting again. */
  backoff_ms?: { first: number; most: number }
}

type Waiting = { resolve(result: never): void; reject(error: MediaRefusal): void; timer: Timer }

/** Returns at once and connects in the background. Requests while disconnected fail with `media_unavailable`. */
export const connectMedia = (options: ConnectOptions): MediaClient => new Client(options)

const notConnected = (): MediaRefusal => new MediaRefusal('media_unavailable', 'the media worker is not connected')

class Client implements MediaClient {
  readonly #options: ConnectOptions
  readonly #emitter = new EventEmitter()
  readonly #waiting = new Map<number, Waiting>()
  readonly #backoff: { readonly first: number; readonly most: number }
  #socket: Socket | null = null
  #write: (value: unknown) => void = () => undefined
  #greeted = false
  #closed = false
  #retry: NodeJS.Timeout | null = null
  #pause_ms: number
  #next_id = 1

  constructor(options: ConnectOptions) {
    this.#options = options
    this.#backoff = options.backoff_ms ?? { first: 50, most: 2000 }
    this.#pause_ms = this.#backoff.first
    this.#emitter.setMaxListeners(0)
    this.#open()
  }

  get connected(): boolean {
    return this.#greeted
  }

  request<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    return this.#greeted ? this.#send(method, params) : Promise.reject(notConnected())
  }

  on: MediaClient['on'] = (event, listener) => void this.#emitter.on(event, listener as (...args: unknown[]) => void)
  once: MediaClient['once'] = (event, listener) =>
    void this.#emitter.once(event, listener as (...args: unknown[]) => void)
  off: MediaClient['off'] = (event, listener) => void this.#emitter.off(event, listener as (...args: unknown[]) => void)

  close(): void {
    this.#closed = true
    if (this.#retry) clearTimeout(this.#retry)
    this.#socket?.destroy()
  }

  #open(): void {
    this.#retry = null
    const socket = connect(this.#options.path)
    this.#socket = socket
    this.#write = frameWriter(socket)
    let reason = 'the media worker closed the connection'
    socket.on(
      'data',
      frameReader(
        message => this.#receive(message),
        detail => socket.destroy(new Error(detail)),
      ),
    )
    socket.on('error', error => {
      reason = error.message
    })
    socket.on('connect', () => this.#greet(socket))
    socket.on('close', () => this.#lost(reason))
  }

  #greet(socket: Socket): void {
    const { log, client = `pid-${process.pid}` } = this.#options
    this.#send('hello', { client }).then(
      hello => {
        this.#greeted = true
        this.#pause_ms = this.#backoff.first
        log.info({ worker_id: hello.worker_id, worker_pid: hello.pid }, 'media worker connected')
        this.#emitter.emit('up', hello)
      },
      (error: MediaRefusal) => socket.destroy(error),
    )
  }

  #lost(detail: string): void {
    this.#socket = null
    for (const request of this.#waiting.values()) {
      request.timer.cancel()
      request.reject(new MediaRefusal('media_unavailable', detail))
    }
    this.#waiting.clear()
    if (this.#greeted) {
      this.#greeted = false
      if (!this.#closed) this.#options.log.warn({ detail }, 'media worker lost')
      this.#emitter.emit('down', { detail })
    }
    if (this.#closed) return
    this.#retry = setTimeout(() => this.#open(), this.#pause_ms)
    this.#pause_ms = Math.min(this.#pause_ms * 2, this.#backoff.most)
  }

  #receive(message: Record<string, unknown>): void {
    if (typeof message['event'] === 'string') {
      const { event, ...fields } = message
      if (Object.hasOwn(EVENTS, event as string)) this.#emitter.emit(event as string, fields)
      return
    }
    const request = this.#waiting.get(message['id'] as number)
    if (!request) return
    this.#waiting.delete(message['id'] as number)
    request.timer.cancel()
    const error = message['error'] as { reason: string; detail: string } | undefined
    if (error) request.reject(new MediaRefusal(error.reason, error.detail))
    else request.resolve(message['result'] as never)
  }

  #send<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    const { request_timeout_ms = 10_000 } = this.#options
    return new Promise((resolve, reject) => {
      if (!this.#socket || this.#closed) {
        reject(notConnected())
        return
      }
      const id = this.#next_id++
      const timer = systemClock.after(request_timeout_ms, () => {
        this.#waiting.delete(id)
        reject(new MediaRefusal('media_unavailable', `no reply to ${method} within ${request_timeout_ms} ms`))
      })
      this.#waiting.set(id, { resolve, reject, timer })
      this.#write({ id, method, params })
    })
  }
}
