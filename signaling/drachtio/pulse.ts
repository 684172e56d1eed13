import type { Socket } from 'node:net'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Wire } from './library.ts'

const PING_MS = 2000
/** With so many pings unanswered the server is silent: no new call is given to it. */
const SILENT_PINGS = 4
/** With so many, as after the 32 s that SIP waits itself (64*T1), the link is given up: its host may be gone. */
const LOST_PINGS = 18

/**
 * Whether somebody answers at the other end of the link: a server that was stopped, or whose host is gone, keeps its
 * connection. Counts its own looks, not the time that has passed: a process that was itself stopped has heard nothing.
 */
export class Pulse {
  readonly #unanswered = new Map<Socket, number>()
  readonly #looks: Timer
  #looked = false

  constructor(options: {
    readonly wire: Wire
    readonly clock: Clock
    readonly authenticated: () => boolean
    readonly lost: (socket: Socket) => void
  }) {
    const { wire, clock, authenticated, lost } = options
    wire.on('connect', socket => void this.#unanswered.set(socket, 0))
    wire.on('close', socket => void this.#unanswered.delete(socket))
    wire.on('msg', socket => void this.#unanswered.set(socket, 0))
    this.#looks = clock.every(PING_MS, () => {
      // Looks without a turn of the event loop in between are one: nothing could be read.
      if (this.#looked) return
      this.#looked = true
      setImmediate(() => {
        this.#looked = false
      })
      for (const [socket, before] of this.#unanswered) {
        this.#unanswered.set(socket, before + 1)
        if (before + 1 > LOST_PINGS) lost(socket)
        else if (authenticated()) wire.send(socket, 'ping')
      }
    })
  }

  /** A connection stands, and whoever has accepted it says nothing. */
  get silent(): boolean {
    return [...this.#unanswered.values()].some(pings => pings >= SILENT_PINGS)
  }

  stop(): void {
    this.#looks.cancel()
  }
}
