import type { WebSocket } from 'ws'
import type { Clock, Timer } from '../../core/runtime/clock.ts'

interface AppSocketOptions {
  readonly clock: Clock
  message(text: string): void
  /** A frame cannot be read. */
  fault(detail: string): void
  /** The other side has closed, or no longer answers. */
  closed(detail: string): void
}

const MAX_MESSAGE_BYTES = 65_536
/** Messages that are read in a second. The rest waits in the application's connection. */
const MAX_PER_SECOND = 200
/** An application that reads so little is lost. */
const MAX_UNSENT_BYTES = 1 << 20
const PING_MS = 15_000
/** Messages that wait for the connection. Callers press keys while the greeting plays and the application connects. */
const MOST_EARLY = 100

/** The WebSocket of a relay application, with its limits. */
export class AppSocket {
  readonly #options: AppSocketOptions
  readonly #abort = new AbortController()
  #socket: WebSocket | null = null
  /** What waits for the connection; null: it has been made. */
  #early: object[] | null = []
  #second: Timer | null = null
  #ping: Timer | null = null
  #read = 0
  #answered = true

  constructor(options: AppSocketOptions) {
    this.#options = options
  }

  /** Aborts an attempt to connect when the session ends. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Takes the connection. `first` goes before all that has been sent so far. */
  open(socket: WebSocket, first: object): void {
    this.#socket = socket
    const { clock, closed } = this.#options
    socket.on('message', (data, binary) => this.#message(data.toString(), binary))
    socket.on('error', error => closed(error.message))
    socket.on('close', code => closed(`closed with ${code}`))
    socket.on('pong', () => {
      this.#answered = true
    })
    this.#ping = clock.every(PING_MS, () => {
      if (!this.#answered) return closed('no answer to a ping')
      this.#answered = false
      socket.ping()
    })
    const early = this.#early ?? []
    this.#early = null
    for (const message of [first, ...early]) this.send(message)
  }

  send(message: object): void {
    if (this.#early && this.#early.length < MOST_EARLY) this.#early.push(message)
    const socket = this.#socket
    if (!socket || socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) this.#options.closed('the application does not read')
    else socket.send(JSON.stringify(message))
  }

  close(): void {
    this.#abort.abort()
    this.#second?.cancel()
    this.#ping?.cancel()
    const socket = this.#socket
    this.#socket = null
    if (!socket) return
    // A paused socket would not see the closing handshake.
    if (socket.isPaused) socket.resume()
    socket.close(1000)
  }

  #message(text: string, binary: boolean): void {
    if (!this.#socket) return
    this.#limit(this.#socket)
    if (binary) this.#options.fault('the message is binary; text is expected')
    else if (text.length > MAX_MESSAGE_BYTES)
      this.#options.fault(`the message is longer than ${MAX_MESSAGE_BYTES} bytes`)
    else this.#options.message(text)
  }

  #limit(socket: WebSocket): void {
    this.#second ??= this.#options.clock.after(1000, () => {
      this.#second = null
      this.#read = 0
      if (socket.isPaused) socket.resume()
    })
    if (++this.#read >= MAX_PER_SECOND) socket.pause()
  }
}
