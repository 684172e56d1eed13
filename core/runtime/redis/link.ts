import type { createClient } from '@redis/client'
import { type Clock, systemClock } from '../clock.ts'
import { ANSWER_MS, KeptLink } from '../kept-link.ts'
import type { Log } from '../log.ts'

type RedisClient = ReturnType<typeof createClient>

interface Settings {
  /** `redis://user:password@host:port/number`, or `rediss://` for TLS. */
  readonly url: string
  readonly log: Log
  /** What does not happen while the server is away, for the log. */
  readonly without: string
  readonly clock?: Pick<Clock, 'after' | 'every'>
  /** Prepares a new connection. One whose preparation fails is given up. */
  readonly prepare?: (client: RedisClient) => Promise<unknown>
  /** Called when a connection is ready. */
  readonly ready?: () => void
}

/**
 * A connection to a Redis server. The library could reconnect by itself too, but not find out that a server has fallen
 * silent.
 */
export class RedisLink {
  readonly #settings: Settings
  readonly #clock: Pick<Clock, 'after' | 'every'>
  readonly #kept: KeptLink<RedisClient>
  /** The first attempt is over. */
  #tried = false

  constructor(settings: Settings) {
    const { log, without, ready, clock = systemClock } = settings
    this.#settings = settings
    this.#clock = clock
    this.#kept = new KeptLink(
      {
        open: lost => this.#open(lost),
        ask: client => this.#within(ANSWER_MS, client.ping()),
        destroy: client => client.destroy(),
        ...(ready ? { ready } : {}),
        away: why => log.warn({ why }, `the Redis server is away: ${without}`),
        back: () => log.info('the Redis server is back'),
      },
      clock,
    )
    void this.#kept.tried.then(() => {
      this.#tried = true
    })
  }

  /** The server can be asked. */
  get ready(): boolean {
    return this.#kept.current !== null
  }

  /** Asks the server, at first when it has been reached. A connection that fails, or answers late, is given up. */
  async run<T>(ask: (client: RedisClient) => Promise<T>, within_ms = ANSWER_MS): Promise<T> {
    if (!this.#tried) await this.#within(within_ms, this.#kept.tried)
    const client = this.#kept.current
    if (client === null) throw new Error('the Redis server is away')
    try {
      return await this.#within(within_ms, ask(client))
    } catch (error) {
      this.#kept.giveUp(client, error)
      throw error
    }
  }

  close(): Promise<void> {
    return this.#kept.close()
  }

  async #open(lost: (why: unknown) => void): Promise<RedisClient> {
    const { url, prepare } = this.#settings
    // The library is loaded where it is used.
    const library = await import('@redis/client')
    const client: RedisClient = library.createClient({
      url,
      name: 'strowger',
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      socket: { connectTimeout: ANSWER_MS, reconnectStrategy: false },
    })
    client.on('error', lost)
    try {
      await this.#within(ANSWER_MS, client.connect())
      await this.#within(ANSWER_MS, prepare?.(client) ?? Promise.resolve())
      return client
    } catch (error) {
      client.destroy()
      throw error
    }
  }

  #within<T>(ms: number, answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = this.#clock.after(ms, () => reject(new Error('the Redis server has not answered in time')))
      answer.then(resolve, reject).finally(() => late.cancel())
    })
  }
}
