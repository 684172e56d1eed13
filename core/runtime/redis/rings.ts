import { randomUUID } from 'node:crypto'
import { type BusBridge, SHARED_TOPICS, type Topic } from '../bus.ts'
import { type Clock, systemClock } from '../clock.ts'
import { GatheredRings, topicsIn } from '../gathered-rings.ts'
import type { Log } from '../log.ts'
import { RedisLink } from './link.ts'

interface Settings {
  readonly url: string
  /** Begins the names of the installation: others may use the same server. */
  readonly prefix: string
  readonly log: Log
  readonly clock?: Pick<Clock, 'after' | 'every'>
}

/**
 * Rings between machines by PUBLISH and SUBSCRIBE. Redis keeps no message for who is away, so after each connection all
 * topics ring here. While it is away, the other machines find the rows when they look by themselves.
 */
export class RedisRings implements BusBridge {
  readonly #channel: string
  readonly #rings: GatheredRings
  readonly #link: RedisLink
  /** Begins our messages: Redis tells them to us, too. */
  readonly #own = randomUUID()
  #hear: (topic: Topic) => void = () => undefined

  constructor({ url, prefix, log, clock = systemClock }: Settings) {
    this.#channel = `${prefix}:rings`
    this.#rings = new GatheredRings(clock, topics => this.#publish(topics))
    this.#link = new RedisLink({
      url,
      log,
      clock,
      without: 'other machines are not woken, so changes take longer to reach them',
      prepare: client => client.subscribe(this.#channel, text => this.#heard(text)),
      ready: () => {
        for (const topic of SHARED_TOPICS) this.#hear(topic)
        this.#rings.flush()
      },
    })
  }

  ring(topic: Topic): void {
    this.#rings.add(topic)
  }

  onRing(listener: (topic: Topic) => void): void {
    this.#hear = listener
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  #publish(topics: readonly Topic[]): boolean {
    if (!this.#link.ready) return false
    // Who misses a message hears of everything after the next connection.
    this.#link.run(client => client.publish(this.#channel, [this.#own, ...topics].join(' '))).catch(() => undefined)
    return true
  }

  #heard(text: string): void {
    if (text.startsWith(`${this.#own} `)) return
    for (const topic of topicsIn(text)) this.#hear(topic)
  }
}
