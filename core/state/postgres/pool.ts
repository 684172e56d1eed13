import type { Host } from '../../runtime/database-url.ts'
import { closedError, StateError } from '../port.ts'
import { type Counts, Link, type TimeOuts } from './link.ts'
import { OwnTurns } from './own-turns.ts'

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

/**
 * Connections to the primary among several servers. Each new connection goes through the list, beginning with the
 * server that was the primary last. A connection that broke, or on which a statement took too long, is destroyed.
 */
export class Pool {
  readonly counts: Counts = { statements: 0, commits: 0 }
  readonly turns = new OwnTurns()
  readonly #settings: Settings
  readonly #idle: Link[] = []
  readonly #waiting: Waiter[] = []
  /** Connections, lent and idle, and those that are being made. */
  #count = 0
  #primary = 0
  #closed = false
  #emptied: (() => void) | null = null

  constructor(settings: Settings) {
    this.#settings = settings
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
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(new StateError('no connection was free in time', { code: 'NO_CONNECTION', failure: 'busy' }))
      }, within_ms)
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
    for (const { fail } of this.#waiting.splice(0)) fail(closedError())
    const idle = this.#idle.splice(0)
    await Promise.all(idle.map(link => link.close()))
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
    this.#findPrimary().then(
      link => this.giveBack(link),
      error => {
        this.#left()
        this.#waiting.shift()?.fail(error)
        this.#grow()
      },
    )
  }

  #drop(link: Link): void {
    link.destroy()
    this.#left()
  }

  #left(): void {
    this.#count--
    if (this.#closed && this.#count === 0) this.#emptied?.()
  }

  async #findPrimary(): Promise<Link> {
    const { hosts } = this.#settings
    const found: string[] = []
    for (let tries = 0; tries < hosts.length; tries++) {
      const at = (this.#primary + tries) % hosts.length
      const host = hosts[at]
      if (!host) continue
      try {
        const link = await Link.open(host, this.#settings, this.counts)
        if (await isPrimary(link)) {
          this.#primary = at
          return link
        }
        await link.close()
        found.push(`${host.name} is a standby`)
      } catch (error) {
        found.push(`${host.name}: ${(error as Error).message}`)
      }
    }
    throw new StateError(`no primary was found (${found.join('; ')})`, { code: 'NO_PRIMARY', failure: 'away' })
  }
}

async function isPrimary(link: Link): Promise<boolean> {
  try {
    const { rows } = await link.run('select pg_is_in_recovery() as standby')
    return rows[0]?.['standby'] === 0
  } catch (error) {
    link.destroy()
    throw error
  }
}
