import type { Host } from '../../runtime/database-url.ts'
import { closedError, StateError } from '../port.ts'
import { type Counts, Link, type TimeOuts } from './link.ts'
import { OwnTurns } from './own-turns.ts'
import { findPrimary } from './primary.ts'
import { SilentLinks } from './silent-links.ts'

interface Settings extends TimeOuts {
  readonly hosts: readonly Host[]
  /** The most connections. */
  readonly size: number
}

/** Someone who waits for a connection. */
interface Waiter {
  readonly take: (link: Link) => void
  readonly fail: (error: unknown) => void
}

/** How long callers wait for a connection while the last attempt to make one has failed: they have others to tell. */
const AWAY_PATIENCE_MS = 1000

/**
 * Connections to the primary among several servers. Each new connection goes through the list, beginning with the
 * server that was the primary last. A connection that broke or fell silent, or on which a statement took too long, is
 * destroyed.
 */
export class Pool {
  readonly counts: Counts = { statements: 0, messages: 0, commits: 0 }
  readonly turns = new OwnTurns()
  readonly #settings: Settings
  readonly #idle: Link[] = []
  readonly #waiting: Waiter[] = []
  /** Connections, lent and idle, and those that are being made. */
  #count = 0
  #primary: Host | undefined
  /** The last attempt to reach a primary has failed. */
  #away = false
  readonly #open = new Set<Link>()
  readonly #silent: SilentLinks
  #closed = false
  #emptied: (() => void) | null = null

  constructor(settings: Settings) {
    this.#settings = settings
    this.#primary = settings.hosts[0]
    this.#silent = new SilentLinks({
      links: this.#open,
      counts: this.counts,
      unreachable: () => {
        this.#away = true
      },
    })
  }

  /** Lends a connection for `work`. Fails as busy when none is free within `within_ms`. @throws StateError */
  async use<T>(within_ms: number, work: (link: Link) => Promise<T>): Promise<T> {
    const link = await this.lend(within_ms)
    try {
      return await work(link)
    } finally {
      this.giveBack(link)
    }
  }

  /** Lends a connection until `giveBack`. @throws StateError */
  async lend(within_ms: number): Promise<Link> {
    if (this.#closed) throw closedError()
    for (let link = this.#idle.pop(); link; link = this.#idle.pop()) {
      if (!link.broken) return link
      this.#drop(link)
    }
    const lent = new Promise<Link>((resolve, reject) => {
      const done =
        <V>(settle: (value: V) => void) =>
        (value: V) => {
          clearTimeout(late)
          settle(value)
        }
      const waiter: Waiter = { take: done(resolve), fail: done(reject) }
      const away = this.#away
      const failed = { code: 'NO_CONNECTION', failure: away ? 'away' : 'busy' } as const
      const late = setTimeout(
        () => {
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
          reject(new StateError(`no connection was ${away ? 'made' : 'free'} in time`, failed))
        },
        away ? Math.min(within_ms, AWAY_PATIENCE_MS) : within_ms,
      )
      this.#waiting.push(waiter)
    })
    this.#grow()
    return lent
  }

  giveBack(link: Link): void {
    if (link.broken || this.#closed) {
      this.#drop(link)
      this.#grow()
      return
    }
    const next = this.#waiting.shift()
    if (next) next.take(link)
    else this.#idle.push(link)
  }

  /** Closes idle connections now and lent ones when they come back. Resolves when none is left. */
  async close(): Promise<void> {
    this.#closed = true
    this.#silent.stop()
    for (const { fail } of this.#waiting.splice(0)) fail(closedError())
    const idle = this.#idle.splice(0)
    await Promise.all(idle.map(link => link.close()))
    for (const link of idle) this.#open.delete(link)
    this.#count -= idle.length
    if (this.#count === 0) return
    await new Promise<void>(resolve => {
      this.#emptied = resolve
    })
  }

  /** Makes one more connection when someone waits and there may be one. A failure is that of the first who waits. */
  #grow(): void {
    if (this.#waiting.length === 0 || this.#count >= this.#settings.size) return
    this.#count++
    const { hosts } = this.#settings
    findPrimary(hosts, this.#primary, host => Link.open(host, this.#settings, this.counts)).then(
      link => {
        this.#away = false
        this.#primary = link.host
        this.#open.add(link)
        this.giveBack(link)
      },
      error => {
        this.#away = true
        this.#left()
        this.#waiting.shift()?.fail(error)
        this.#grow()
      },
    )
  }

  #drop(link: Link): void {
    link.destroy()
    this.#open.delete(link)
    this.#left()
  }

  #left(): void {
    this.#count--
    if (this.#closed && this.#count === 0) this.#emptied?.()
  }
}
