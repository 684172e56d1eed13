import { Client } from 'pg'
import { type BusBridge, SHARED_TOPICS, type Topic } from '../../runtime/bus.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { Host } from '../../runtime/database-url.ts'
import { GatheredRings, topicsIn } from '../../runtime/gathered-rings.ts'
import { ANSWER_MS, KeptLink } from '../../runtime/kept-link.ts'
import type { Log } from '../../runtime/log.ts'

const CHANNEL = 'strowger_rings'

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
  readonly #hosts: readonly Host[]
  readonly #clock: Pick<Clock, 'after' | 'every'>
  readonly #kept: KeptLink<Client>
  readonly #rings: GatheredRings
  #hear: (topic: Topic) => void = () => undefined

  constructor({ hosts, log, clock = systemClock }: Settings) {
    this.#hosts = hosts
    this.#clock = clock
    this.#rings = new GatheredRings(clock, topics => this.#notify(topics))
    this.#kept = new KeptLink(
      {
        open: lost => this.#open(lost),
        ask: client => client.query('select 1'),
        destroy,
        end: client => this.#end(client),
        ready: () => {
          for (const topic of SHARED_TOPICS) this.#hear(topic)
          this.#rings.flush()
        },
        away: why => log.warn({ why }, 'other machines cannot be woken: changes take longer to reach them'),
        back: () => log.info('other machines can be woken again'),
      },
      clock,
    )
  }

  ring(topic: Topic): void {
    this.#rings.add(topic)
  }

  onRing(listener: (topic: Topic) => void): void {
    this.#hear = listener
  }

  close(): Promise<void> {
    return this.#kept.close()
  }

  #notify(topics: readonly Topic[]): boolean {
    const client = this.#kept.current
    if (client === null) return false
    // Nothing waits for it. A connection that fails it is given up.
    const told = client.query('select pg_notify($1, $2)', [CHANNEL, topics.join(' ')])
    told.catch(error => this.#kept.giveUp(client, error))
    return true
  }

  /** Connects to the first server that lets us listen. A standby does not. */
  async #open(lost: (why: unknown) => void): Promise<Client> {
    const found: string[] = []
    for (const host of this.#hosts)
      try {
        return await this.#listen(host, lost)
      } catch (error) {
        found.push(`${host.name}: ${(error as Error).message}`)
      }
    throw new Error(found.join('; '))
  }

  async #listen({ url }: Host, lost: (why: unknown) => void): Promise<Client> {
    const client = new Client({
      connectionString: url,
      application_name: 'strowger rings',
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      // What is sent does not wait for the reply before.
      pipeline: true,
    })
    // The socket closes after an error, too.
    client.on('error', () => undefined)
    let [listens, ended] = [false, false]
    client.once('end', () => {
      ended = true
      if (listens) lost(null)
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
      listens = true
      return client
    } catch (error) {
      destroy(client)
      throw error
    }
  }

  async #end(client: Client): Promise<void> {
    const late = this.#clock.after(ANSWER_MS, () => destroy(client))
    await client.end().catch(() => destroy(client))
    late.cancel()
  }
}

const destroy = (client: Client): void => void client.connection.stream.destroy()
