import { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
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

type Waiting = { resolve(result: never): void; reject(error: MediaRefusal): void; timer: NodeJS.Timeout }

/** Returns at once and connects in the background. Requests while disconnected fail with `media_unavailable`. */
export function connectMedia(options: ConnectOptions): MediaClient {
  const { path, log, client = `pid-${process.pid}`, request_timeout_ms = 10_000 } = options
  const backoff = options.backoff_ms ?? { first: 50, most: 2000 }
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  const waiting = new Map<number, Waiting>()
  let socket: Socket | null = null
  let write: (value: unknown) => void = () => undefined
  let greeted = false
  let closed = false
  let retry: NodeJS.Timeout | null = null
  let pause_ms = backoff.first
  let next_id = 1

  const open = () => {
    retry = null
    const mine = connect(path)
    socket = mine
    write = frameWriter(mine)
    let reason = 'the media worker closed the connection'
    mine.on(
      'data',
      frameReader(receive, detail => mine.destroy(new Error(detail))),
    )
    mine.on('error', error => {
      reason = error.message
    })
    mine.on('connect', () => {
      send('hello', { client }).then(
        hello => {
          greeted = true
          pause_ms = backoff.first
          log.info({ worker_id: hello.worker_id, worker_pid: hello.pid }, 'media worker connected')
          emitter.emit('up', hello)
        },
        (error: MediaRefusal) => mine.destroy(error),
      )
    })
    mine.on('close', () => {
      socket = null
      for (const request of waiting.values()) {
        clearTimeout(request.timer)
        request.reject(new MediaRefusal('media_unavailable', reason))
      }
      waiting.clear()
      if (greeted) {
        greeted = false
        if (!closed) log.warn({ detail: reason }, 'media worker lost')
        emitter.emit('down', { detail: reason })
      }
      if (closed) return
      retry = setTimeout(open, pause_ms)
      pause_ms = Math.min(pause_ms * 2, backoff.most)
    })
  }

  const receive = (message: Record<string, unknown>) => {
    if (typeof message['event'] === 'string') {
      const { event, ...fields } = message
      if (Object.hasOwn(EVENTS, event as string)) emitter.emit(event as string, fields)
      return
    }
    const request = waiting.get(message['id'] as number)
    if (!request) return
    waiting.delete(message['id'] as number)
    clearTimeout(request.timer)
    const error = message['error'] as { reason: string; detail: string } | undefined
    if (error) request.reject(new MediaRefusal(error.reason, error.detail))
    else request.resolve(message['result'] as never)
  }

  const send = <M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> =>
    new Promise((resolve, reject) => {
      if (!socket || closed) {
        reject(new MediaRefusal('media_unavailable', 'the media worker is not connected'))
        return
      }
      const id = next_id++
      const timer = setTimeout(() => {
        waiting.delete(id)
        reject(new MediaRefusal('media_unavailable', `no reply to ${method} within ${request_timeout_ms} ms`))
      }, request_timeout_ms)
      waiting.set(id, { resolve, reject, timer })
      write({ id, method, params })
    })

  open()
  return {
    request: (method, params) =>
      greeted
        ? send(method, params)
        : Promise.reject(new MediaRefusal('media_unavailable', 'the media worker is not connected')),
    on: (event, listener) => void emitter.on(event, listener as (...args: unknown[]) => void),
    once: (event, listener) => void emitter.once(event, listener as (...args: unknown[]) => void),
    off: (event, listener) => void emitter.off(event, listener as (...args: unknown[]) => void),
    get connected() {
      return greeted
    },
    close() {
      closed = true
      if (retry) clearTimeout(retry)
      socket?.destroy()
    },
  }
}
