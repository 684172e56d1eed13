import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { StreamFramer, type StreamItem } from '../sip/stream.ts'
import type { Address, Listener, Protocol } from './types.ts'

// A TCP, TLS or WebSocket connection that carries SIP. On a WebSocket each frame is one message (RFC 7118 §5). On the
// others Content-Length delimits messages.

interface ConnectionEvents {
  readonly message: (connection: StreamConnection, text: string) => void
  readonly broken: (connection: StreamConnection, item: StreamItem & { kind: 'broken' }) => void
  /** The peer sends no more and may still read. */
  readonly ended: (connection: StreamConnection) => void
  readonly closed: (connection: StreamConnection) => void
}

export interface ConnectionSetup {
  readonly protocol: Protocol
  readonly listener: Listener
  readonly remote: Address
  readonly inbound: boolean
  /** For a TLS connection that we make: what its peer proved. Only requests that require the same proof may use it. */
  readonly proved?: string | undefined
  /** For a TLS connection that a peer made: everything that its certificate proves. */
  readonly certified?: readonly string[] | undefined
  readonly limits: { readonly message_bytes: number; readonly unsent_bytes: number }
  readonly now: () => number
  readonly events: ConnectionEvents
}

let serial = 0

export class StreamConnection {
  readonly id: number = ++serial
  readonly protocol: Protocol
  readonly listener: Listener
  readonly remote: Address
  readonly inbound: boolean
  readonly proved: string
  /** The monotonic time of the last bytes received. */
  active_at: number
  /** The monotonic time until which a contact that was registered over it needs it, however silent it is. */
  wanted_until = 0
  /** The later connection with which the peer has replaced this one. */
  successor: StreamConnection | undefined
  /** The monotonic time since which a message is incomplete; 0 when none is. */
  incomplete_at = 0
  readonly certified: readonly string[]
  /** Further keys by which requests to this peer find the connection (RFC 5923). */
  readonly aliases: string[] = []
  #open = true
  /** Requests of the peer without a final response. */
  #unanswered = 0
  #finishing = false
  #connecting: { text: string; failed: (error: Error) => void }[] | undefined
  #queued_bytes = 0
  readonly #setup: ConnectionSetup
  readonly #framer: StreamFramer
  #socket: Socket | undefined
  #web: WebSocket | undefined

  constructor(setup: ConnectionSetup) {
    this.#setup = setup
    this.protocol = setup.protocol
    this.listener = setup.listener
    this.remote = setup.remote
    this.inbound = setup.inbound
    this.proved = setup.proved ?? ''
    this.certified = setup.certified ?? []
    this.active_at = setup.now()
    this.#framer = new StreamFramer(setup.limits.message_bytes)
  }

  /** Whether another machine's edge holds the connection and sends for us. */
  get lent(): boolean {
    return false
  }

  get open(): boolean {
    return this.#open
  }

  /** False once the peer sends no more: then only the answers that we still owe go out. */
  get takes_requests(): boolean {
    return this.#open && !this.#finishing
  }

  /** Attaches a TCP or TLS socket. If `connecting`, messages wait until `connected()`. */
  attachSocket(socket: Socket, connecting: boolean): void {
    this.#socket = socket
    if (connecting) this.#connecting = []
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#data(chunk.toString('latin1')))
    socket.on('error', error => this.fail(error))
    socket.on('end', () => this.#setup.events.ended(this))
    socket.on('close', () => this.fail(new Error('connection closed')))
  }

  attachWebSocket(web: WebSocket): void {
    this.#web = web
    web.on('message', (data: Buffer) => {
      // `ws` still emits frames that it read before the connection ended.
      if (!this.#open) return
      this.active_at = this.#setup.now()
      const text = data.toString('latin1')
      if (text === '\r\n\r\n') web.send('\r\n')
      else if (text.trim() !== '') this.#setup.events.message(this, text)
    })
    web.on('ping', () => {
      this.active_at = this.#setup.now()
    })
    web.on('error', error => this.fail(error))
    web.on('close', () => this.fail(new Error('connection closed')))
  }

  connected(): void {
    const waiting = this.#connecting
    this.#connecting = undefined
    this.#queued_bytes = 0
    for (const { text } of waiting ?? []) this.#write(text)
  }

  /** Sends a byte string. `failed` is called later, at most once, if the connection cannot take it. */
  send(text: string, failed: (error: Error) => void): void {
    if (!this.#open) {
      queueMicrotask(() => failed(new Error('connection closed')))
      return
    }
    if (this.#connecting) {
      this.#queued_bytes += text.length
      if (this.#queued_bytes > this.#setup.limits.unsent_bytes) {
        queueMicrotask(() => failed(new Error('too much waits for this connection')))
        return
      }
      this.#connecting.push({ text, failed })
      return
    }
    this.#write(text)
    if (isFinal(text) && this.#unanswered > 0 && --this.#unanswered === 0 && this.#finishing) this.#end()
  }

  /** Answers what could not be framed. It is none of the requests that wait for their answer. */
  refuse(text: string): void {
    if (this.#open) this.#write(text)
  }

  /**
   * Closes as soon as each request that the peer has sent has its final response. Returns whether some still wait.
   * Whole requests are answered, whatever came behind them (RFC 4475 §3.1.2.4).
   */
  finish(): boolean {
    this.#finishing = true
    if (this.#unanswered === 0) this.#end()
    return this.#unanswered > 0
  }

  #end(): void {
    this.#socket?.end()
    this.#web?.close()
  }

  /** Closes at once. Messages that wait for the connection fail. */
  fail(error: Error): void {
    if (!this.#open) return
    this.#open = false
    const waiting = this.#connecting ?? []
    this.#connecting = undefined
    this.#socket?.destroy()
    this.#web?.terminate()
    this.#setup.events.closed(this)
    for (const { failed } of waiting) failed(error)
  }

  #write(text: string): void {
    const unsent = this.#socket ? this.#socket.writableLength : (this.#web?.bufferedAmount ?? 0)
    if (unsent > this.#setup.limits.unsent_bytes) {
      this.fail(new Error('peer does not read'))
      return
    }
    if (this.#socket) this.#socket.write(text, 'latin1')
    else this.#web?.send(Buffer.from(text, 'latin1'), { binary: !isUtf8(text) })
  }

  #data(text: string): void {
    this.active_at = this.#setup.now()
    const items = this.#framer.push(text)
    // A message that is incomplete now began after the last complete one.
    if (items.length > 0) this.incomplete_at = 0
    for (const item of items) {
      if (item.kind === 'message') {
        if (isRequest(item.text)) this.#unanswered++
        this.#setup.events.message(this, item.text)
      } else if (item.kind === 'ping') this.#socket?.write('\r\n')
      else this.#setup.events.broken(this, item)
      if (!this.#open) return
    }
    if (this.#framer.pending === 0) this.incomplete_at = 0
    else if (this.incomplete_at === 0) this.incomplete_at = this.active_at
  }
}

const isFinal = (text: string): boolean => text.startsWith('SIP/2.0 ') && text.charCodeAt(8) >= 50

/** An ACK has no response. */
const isRequest = (text: string): boolean => !text.startsWith('SIP/') && !text.startsWith('ACK ')

// RFC 7118 §5.2: text frames must be UTF-8. Other messages are sent as binary frames.
function isUtf8(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return Buffer.from(text, 'latin1').toString('utf8').indexOf('\ufffd') < 0
  }
  return true
}
