import type { Socket } from 'node:net'
import type { Clock } from '../../../core/runtime/clock.ts'
import { FrameReader, frame } from './framing.ts'

// One connection of the control link, with the verbs and tags of its application.

/**
 * Delays the messages of a transaction or dialog briefly after the reply that introduced it. drachtio-srf handles all
 * frames of one TCP chunk before any promise resolves, so a message in the same chunk as the reply would find no
 * listener.
 */
export interface Hold {
  ready_at: number
  waiting: string[] | undefined
}

export const HOLD_MS = 3

export class ControlClient {
  readonly verbs = new Set<string>()
  tags: readonly string[] = []
  authenticated = false
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #unsent_bytes: number
  readonly #reader: FrameReader
  readonly #payload: (client: ControlClient, payload: string) => void
  #out = ''
  #open = true

  constructor(setup: {
    socket: Socket
    clock: Clock
    command_bytes: number
    unsent_bytes: number
    payload: (client: ControlClient, payload: string) => void
    closed: (client: ControlClient, why: string) => void
  }) {
    this.#socket = setup.socket
    this.#clock = setup.clock
    this.#unsent_bytes = setup.unsent_bytes
    this.#payload = setup.payload
    this.#reader = new FrameReader(setup.command_bytes)
    let why = 'closed by the application'
    setup.socket.setNoDelay(true)
    setup.socket.on('data', (chunk: Buffer) => {
      if (!this.#data(chunk.toString('latin1'))) {
        why = 'frame length is not usable'
        this.close()
      }
    })
    setup.socket.on('error', error => {
      why = error.message
    })
    setup.socket.on('close', () => {
      this.#open = false
      setup.closed(this, why)
    })
  }

  get open(): boolean {
    return this.#open
  }

  get remote(): string {
    return `${this.#socket.remoteAddress ?? '?'}:${this.#socket.remotePort ?? 0}`
  }

  /** Sends a payload. All payloads of one turn of the event loop go out in one write at its end. */
  send(payload: string): void {
    if (!this.#open) return
    if (this.#out === '') setImmediate(this.#flush)
    this.#out += frame(payload)
  }

  /** Sends a payload in order, but not before the hold is over. */
  sendHeld(payload: string, hold: Hold): void {
    if (hold.waiting) {
      hold.waiting.push(payload)
      return
    }
    const wait = hold.ready_at - this.#clock.monotonic_ms()
    if (wait <= 0) {
      this.send(payload)
      return
    }
    hold.waiting = [payload]
    this.#clock.after(Math.ceil(wait), () => {
      const waiting = hold.waiting ?? []
      hold.waiting = undefined
      for (const held of waiting) this.send(held)
    })
  }

  /** Sends what waits, then closes. */
  close(): void {
    this.#flush()
    this.#open = false
    this.#socket.end()
    this.#clock.after(500, () => this.#socket.destroy())
  }

  #data(chunk: string): boolean {
    for (const payload of this.#reader.push(chunk)) {
      if (payload === undefined) return false
      if (!this.#open) return true
      this.#payload(this, payload)
    }
    return true
  }

  readonly #flush = (): void => {
    const out = this.#out
    this.#out = ''
    if (out === '' || !this.#open) return
    // Disconnect an application that has stopped reading. Its calls become orphans.
    if (this.#socket.writableLength > this.#unsent_bytes) this.#socket.destroy()
    else this.#socket.write(out, 'latin1')
  }
}
