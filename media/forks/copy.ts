import type { EngineEvent, Stream } from '../../native/index.ts'

const RATE_HZ = 8000
const CHUNK_MS = 20

/** Also sends on another stream what one stream receives or sends, for a recording server. */
export class Copy {
  readonly #from: Stream
  readonly #to: Stream
  readonly #tap_id: string
  #over = false

  constructor(from: Stream, to: Stream, tap_id: string, what: 'received' | 'sent') {
    this.#from = from
    this.#to = to
    this.#tap_id = tap_id
    from.tap({ tap_id, what, rate_hz: RATE_HZ, chunk_ms: CHUNK_MS })
  }

  onTap(event: Extract<EngineEvent, { type: 'tap' }>): boolean {
    if (event.tap_id !== this.#tap_id) return false
    if (!this.#over && !this.#to.closed) this.#to.feed(event.samples, RATE_HZ)
    return true
  }

  stop(): void {
    if (this.#over) return
    this.#over = true
    if (!this.#from.closed) this.#from.untap(this.#tap_id)
  }
}
