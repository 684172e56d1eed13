import type { Socket } from 'node:net'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Wire } from './library.ts'

const PING_MS = 2000
/** After this many unanswered pings the server counts as silent and gets no new calls. */
const SILENT_PINGS = 4
/** After this many, longer than a SIP transaction lasts (64*T1, 32 s), the link is closed: the host may be gone. */
const LOST_PINGS = 18

/**
 * Detects a SIP server that no longer answers: the connection of a stopped process or a lost host stays open. It counts
 * pings, not elapsed time, because our own process may have been stopped and unable to read.
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
      // Ticks without a turn of the event loop between them count as one: nothing could be read.
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

  /** Whether a connection is open whose server does not answer. */
  get silent(): boolean {
    return [...this.#unanswered.values()].some(pings => pings >= SILENT_PINGS)
  }

  stop(): void {
    this.#looks.cancel()
  }
}
