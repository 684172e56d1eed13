import { Client } from 'pg'
import { type BusBridge, SHARED_TOPICS, type Topic } from '../../runtime/bus.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { Host } from '../../runtime/database-url.ts'
import { GatheredRings, topicsIn } from '../../runtime/gathered-rings.ts'
import type { Log } from '../../runtime/log.ts'

const CHANNEL = 'strowger_rings'
const AGAIN_MS = 1000
/** A server that vanished says nothing, so it is asked. */
const ASK_MS = 5000
const ANSWER_MS = 5000

interface Settings {
  readonly hosts: readonly Host[]
  readonly log: Log
  readonly clock?: Pick<Clock, 'after' | 'every'>
}

/**
 * Rings between machines by LISTEN and NOTIFY, over a connection that does nothing else: within a transaction of a call
 * a notification would cost every commit. Notifications are not kept for who is away, so after each connection all
 * topics ring here.
 */
export class PostgresRings implements BusBridge {
  readonly #settings: Settings
  readonly #clock: Pick<Clock, 'after' | 'every'>
  readonly #ask: { cancel(): void }
  readonly #rings: GatheredRings
  /** The connection that listens. */
  #client: Client | null = null
  #closed = false
  #told_lost = false
  #connecting: Promise<void>
  #hear: (topic: Topic) => void = () => undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#clock = settings.clock ?? systemClock
    this.#rings = new GatheredRings(this.#clock, topics => this.#notify(topics))
    this.#ask = this.#clock.every(ASK_MS, () => this.#send('select 1'))
    this.#connecting = this.#connect()
  }

  ring(topic: Topic): void {
    this.#rings.add(topic)
  }

  onRing(listener: (topic: Topic) => void): void {
    this.#hear = listener
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#ask.cancel()
    await this.#connecting
    const client = this.#client
    this.#client = null
    if (!client) return
    const late = this.#clock.after(ANSWER_MS, () => destroy(client))
    await client.end().catch(() => destroy(client))
    late.cancel()
  }

  #notify(topics: readonly Topic[]): boolean {
    if (!this.#client) return false
    this.#send('select pg_notify($1, $2)', [CHANNEL, topics.join(' ')])
    return true
  }

  /** Runs a statement without waiting for it. A connection that fails it is given up. */
  #send(text: string, values: readonly string[] = []): void {
    const client = this.#client
    client?.query(text, [...values]).catch(() => destroy(client))
  }

  async #connect(): Promise<void> {
    const found: string[] = []
    for (const host of this.#settings.hosts) {
      if (this.#closed) return
      try {
        await this.#listen(host)
        return
      } catch (error) {
        found.push(`${host.name}: ${(error as Error).message}`)
      }
    }
    this.#lost(found.join('; '))
  }

  /** Connects to a server and listens. A standby refuses that. */
  async #listen({ url }: Host): Promise<void> {
    const client = new Client({
      connectionString: url,
      application_name: 'strowger rings',
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
    })
    // The socket closes after an error, too.
    client.on('error', () => undefined)
    let ended = false
    client.once('end', () => {
      ended = true
      if (this.#client !== client) return
      this.#client = null
      this.#lost('the connection was lost')
    })
    let own: unknown
    client.on('notification', ({ processId, payload = '' }) => {
      if (processId === own) return
      for (const topic of topicsIn(payload)) this.#hear(topic)
    })
    try {
      await client.connect()
      own = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
      await client.query(`listen ${CHANNEL}`)
      if (ended) throw new Error('the connection was lost')
    } catch (error) {
      destroy(client)
      throw error
    }
    this.#client = client
    if (this.#told_lost) this.#settings.log.info('other machines can be woken again')
    this.#told_lost = false
    for (const topic of SHARED_TOPICS) this.#hear(topic)
    this.#rings.flush()
  }

  #lost(why: string): void {
    if (this.#closed) return
    if (!this.#told_lost)
      this.#settings.log.warn({ why }, 'other machines cannot be woken: changes take longer to reach them')
    this.#told_lost = true
    this.#clock.after(AGAIN_MS, () => {
      this.#connecting = this.#connect()
    })
  }
}

const destroy = (client: Client): void => void client.connection.stream.destroy()
