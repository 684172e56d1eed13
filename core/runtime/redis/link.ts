import type { createClient } from '@redis/client'
import { type Clock, systemClock } from '../clock.ts'
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

const AGAIN_MS = 1000
/** A server that vanished says nothing, so it is asked. */
const ASK_MS = 5000
const ANSWER_MS = 5000

/**
 * A connection to a Redis server, which is made again for as long as it is wanted. Nothing waits for the server: while
 * it is away there is no client. The library could reconnect too, but not find out that a server has fallen silent.
 */
export class RedisLink {
  readonly #settings: Settings
  readonly #clock: Pick<Clock, 'after' | 'every'>
  readonly #ask: { cancel(): void }
  #client: RedisClient | null = null
  #closed = false
  #told_lost = false
  #connecting: Promise<void>
  /** The first attempt is over. */
  #tried = false

  constructor(settings: Settings) {
    this.#settings = settings
    this.#clock = settings.clock ?? systemClock
    this.#connecting = this.#connect().finally(() => {
      this.#tried = true
    })
    this.#ask = this.#clock.every(ASK_MS, () => void this.run(client => client.ping()).catch(() => undefined))
  }

  /** The server can be asked. */
  get ready(): boolean {
    return this.#client !== null
  }

  /** Asks the server, at first when it has been reached. A connection that fails, or answers late, is given up. */
  async run<T>(ask: (client: RedisClient) => Promise<T>, within_ms = ANSWER_MS): Promise<T> {
    if (!this.#tried) await this.#within(within_ms, this.#connecting)
    const client = this.#client
    if (!client) throw new Error('the Redis server is away')
    try {
      return await this.#within(within_ms, ask(client))
    } catch (error) {
      this.#giveUp(client, error)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#ask.cancel()
    await this.#connecting
    const client = this.#client
    this.#client = null
    client?.destroy()
  }

  async #connect(): Promise<void> {
    const { url, prepare, ready, log } = this.#settings
    // The library is loaded where it is used.
    const library = await import('@redis/client')
    if (this.#closed) return
    const client: RedisClient = library.createClient({
      url,
      name: 'strowger',
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      socket: { connectTimeout: ANSWER_MS, reconnectStrategy: false },
    })
    let failed: unknown = null
    client.on('error', error => {
      failed = error
      this.#giveUp(client, error)
    })
    try {
      await this.#within(ANSWER_MS, client.connect())
      await this.#within(ANSWER_MS, prepare?.(client) ?? Promise.resolve())
      if (failed !== null) throw failed
      if (this.#closed) throw new Error('the connection is not wanted any more')
    } catch (error) {
      client.destroy()
      this.#lost(error)
      return
    }
    this.#client = client
    if (this.#told_lost) log.info('the Redis server is back')
    this.#told_lost = false
    ready?.()
  }

  #giveUp(client: RedisClient, error: unknown): void {
    if (this.#client !== client) return
    this.#client = null
    client.destroy()
    this.#lost(error)
  }

  #lost(error: unknown): void {
    if (this.#closed) return
    const { log, without } = this.#settings
    if (!this.#told_lost) log.warn({ why: sentenceOf(error) }, `the Redis server is away: ${without}`)
    this.#told_lost = true
    this.#clock.after(AGAIN_MS, () => {
      this.#connecting = this.#connect()
    })
  }

  #within<T>(ms: number, answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = this.#clock.after(ms, () => reject(new Error('the Redis server has not answered in time')))
      answer.then(resolve, reject).finally(() => late.cancel())
    })
  }
}

/** Several addresses that fail make an error without a message. */
const sentenceOf = (error: unknown): string => {
  const { message = '', code = 'failed' } = error as { readonly message?: string; readonly code?: string }
  return message === '' ? code : message
}
