import { failure } from '../port.ts'
import { type Counts, Link } from './link.ts'

/** How long a server may owe a reply before it is asked what it does. */
const SILENT_MS = 2000
const LOOK_MS = 1000
const ASK_MS = 3000

interface Watched {
  /** The open connections of a pool. */
  readonly links: ReadonlySet<Link>
  readonly counts: Counts
  /** Called when a server cannot be reached. */
  readonly unreachable: () => void
}

/**
 * Finds connections whose server is gone. A statement may take long, and so may its turn; the loss of packets looks the
 * same. So the server of a statement that takes long is asked over another connection whether it still works on it.
 * When it cannot be reached, or has replied already, the connection is destroyed and the statement fails as away.
 */
export class SilentLinks {
  readonly #watched: Watched
  readonly #timer: NodeJS.Timeout
  #asking = false

  constructor(watched: Watched) {
    this.#watched = watched
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.#asking) return
    const now_ms = performance.now()
    const silent = [...this.#watched.links]
      .map(link => ({ link, owes_since_ms: link.owes_since_ms }))
      .filter(({ owes_since_ms }) => owes_since_ms !== null && now_ms - owes_since_ms >= SILENT_MS)
    const host = silent[0]?.link.host
    if (!host) return
    this.#asking = true
    const links = silent.filter(({ link }) => link.host === host)
    const works = await this.#ask(links.map(({ link }) => link))
    this.#asking = false
    // What has replied meanwhile is sound.
    for (const { link, owes_since_ms } of links)
      if (!works(link) && link.owes_since_ms === owes_since_ms) link.destroy()
  }

  /** Asks the server of connections. Returns whether it works on the statement of one. */
  async #ask(links: readonly Link[]): Promise<(link: Link) => boolean> {
    const [first] = links
    if (!first) return () => true
    let asking: Link | null = null
    try {
      const time_outs = { connect_ms: ASK_MS, statement_ms: ASK_MS }
      asking = await Link.open(first.host, time_outs, this.#watched.counts)
      const { rows } = await asking.run(
        `select pid from pg_stat_activity where pid = any($1::int[]) and coalesce(state, '') not like 'idle%'`,
        [`{${links.flatMap(({ backend }) => backend ?? []).join(',')}}`],
      )
      const working = new Set(rows.map(({ pid }) => Number(pid)))
      return ({ backend }) => backend === null || working.has(backend)
    } catch (error) {
      // A server without a free connection can be reached.
      if (failure(error) !== 'away') return () => true
      this.#watched.unreachable()
      return () => false
    } finally {
      asking?.destroy()
    }
  }
}
