import type { Clock } from './clock.ts'

const AGAIN_MS = 1000
/** A server that vanished says nothing, so it is asked. */
const ASK_MS = 5000
/** How long a server may take to accept a connection, or to answer. */
export const ANSWER_MS = 5000

/** How a connection to a kind of server is made, asked and given up. */
interface Kind<C> {
  /** Makes a connection and prepares it. It calls `lost` when the connection breaks later. */
  readonly open: (lost: (why: unknown) => void) => Promise<C>
  /** Rejects when the server does not answer. */
  readonly ask: (link: C) => Promise<unknown>
  readonly destroy: (link: C) => void
  /** Ends a connection that is not wanted any more; by default as `destroy`. */
  readonly end?: (link: C) => Promise<void>
  /** Called when a connection is there. */
  readonly ready?: () => void
  /** Called once for each outage, with a sentence, and when it is over. */
  readonly away: (why: string) => void
  readonly back: () => void
}

/**
 * A connection to a server beside the state, which is made again for as long as it is wanted. Nothing waits for the
 * server: while it is away there is no connection.
 */
export class KeptLink<C> {
  readonly #kind: Kind<C>
  readonly #clock: Pick<Clock, 'after' | 'every'>
  readonly #asking: { cancel(): void }
  /** Resolves when the first attempt is over. */
  readonly tried: Promise<void>
  #current: C | null = null
  #closed = false
  #told_away = false
  #connecting: Promise<void>

  constructor(kind: Kind<C>, clock: Pick<Clock, 'after' | 'every'>) {
    this.#kind = kind
    this.#clock = clock
    this.#connecting = this.#connect()
    this.tried = this.#connecting
    this.#asking = clock.every(ASK_MS, () => this.#ask())
  }

  /** The connection; null while there is none. */
  get current(): C | null {
    return this.#current
  }

  /** Gives a connection up that has failed. */
  giveUp(link: C, why: unknown): void {
    if (this.#current !== link) return
    this.#current = null
    this.#kind.destroy(link)
    this.#lost(why)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#asking.cancel()
    await this.#connecting
    const link = this.#current
    this.#current = null
    if (link === null) return
    if (this.#kind.end) await this.#kind.end(link)
    else this.#kind.destroy(link)
  }

  #ask(): void {
    const link = this.#current
    if (link !== null) this.#kind.ask(link).catch(error => this.giveUp(link, error))
  }

  async #connect(): Promise<void> {
    const { open, destroy, ready, back } = this.#kind
    if (this.#closed) return
    const broken: unknown[] = []
    let link: C | null = null
    try {
      link = await open(why => {
        broken.push(why)
        if (link !== null) this.giveUp(link, why)
      })
    } catch (error) {
      this.#lost(error)
      return
    }
    if (this.#closed || broken.length > 0) {
      destroy(link)
      this.#lost(broken[0])
      return
    }
    this.#current = link
    if (this.#told_away) back()
    this.#told_away = false
    ready?.()
  }

  #lost(why: unknown): void {
    if (this.#closed) return
    if (!this.#told_away) this.#kind.away(sentenceOf(why))
    this.#told_away = true
    this.#clock.after(AGAIN_MS, () => {
      this.#connecting = this.#connect()
    })
  }
}

/** Several addresses that fail make an error without a message. */
function sentenceOf(error: unknown): string {
  const { message = '', code = 'the connection was lost' } = (error ?? {}) as { message?: string; code?: string }
  return message === '' ? code : message
}
