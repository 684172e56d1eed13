import { afterAwake, allRead } from '../../runtime/awake.ts'
import { failure } from '../port.ts'
import { type Counts, Link } from './link.ts'

/** How long a server may owe a reply before it is asked what it does. */
const SILENT_MS = 2000
const LOOK_MS = 1000
/** How long the server may take for a connection, and for the answer, while this process can hear it. */
const ASK_MS = 3000
/** The driver's own limit counts while this process stands still. */
const STATEMENT_MS = 30_000

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
 * When it cannot be reached, or has replied already, the connection is destroyed and the statement fails as away. A
 * process that stood still meanwhile first reads what it was sent.
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
    const silent = [...this.#watched.links].filter(
      ({ owes_since_ms }) => owes_since_ms !== null && now_ms - owes_since_ms >= SILENT_MS,
    )
    const host = silent[0]?.host
    if (!host) return
    this.#asking = true
    const links = silent
      .filter(link => link.host === host)
      .map(link => ({ link, owes_since_ms: link.owes_since_ms, heard_bytes: link.heard_bytes }))
    const works = await this.#ask(links.map(({ link }) => link))
    // The server may have replied before it was asked, to a process that could not listen.
    await allRead()
    this.#asking = false
    for (const { link, owes_since_ms, heard_bytes } of links)
      if (!works(link) && link.owes_since_ms === owes_since_ms && link.heard_bytes === heard_bytes) {
        link.destroy()
        this.#destroyIdle(link.host, owes_since_ms ?? 0)
      }
  }

  /** What broke one connection has broken those, too, that have had nothing to do since. A writer must not find out. */
  #destroyIdle(host: Link['host'], since_ms: number): void {
    for (const link of this.#watched.links)
      if (link.host === host && link.idle_since_ms !== null && link.idle_since_ms < since_ms) link.destroy()
  }

  /** Asks the server of connections. Returns whether it works on the statement of one. */
  async #ask(links: readonly Link[]): Promise<(link: Link) => boolean> {
    const [first] = links
    if (!first) return () => true
    let asking: Link | null = null
    let late: { cancel(): void } | null = null
    try {
      const link = await Link.open(first.host, { connect_ms: ASK_MS, statement_ms: STATEMENT_MS }, this.#watched.counts)
      asking = link
      late = afterAwake(ASK_MS, () => link.destroy())
      const { rows } = await link.run(
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
      late?.cancel()
      asking?.destroy()
    }
  }
}
