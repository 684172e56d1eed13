import { SHARED_TOPICS, type Topic, topicNamed } from './bus.ts'
import type { Clock } from './clock.ts'

/** Rings that follow within this time leave together: each message between machines costs all of them a read. */
const GAP_MS = 50

/** Gathers the rings that leave for other machines: the first at once, those of the next 50 ms together. */
export class GatheredRings {
  readonly #clock: Pick<Clock, 'after'>
  readonly #send: (topics: readonly Topic[]) => boolean
  /** Topics that have rung here and were not sent. */
  readonly #waiting = new Set<Topic>()
  #resting = false

  /** `send` returns false while nothing can be sent: the topics wait for `flush`. */
  constructor(clock: Pick<Clock, 'after'>, send: (topics: readonly Topic[]) => boolean) {
    this.#clock = clock
    this.#send = send
  }

  add(topic: Topic): void {
    this.#waiting.add(topic)
    this.flush()
  }

  flush(): void {
    if (this.#resting || this.#waiting.size === 0 || !this.#send([...this.#waiting])) return
    this.#waiting.clear()
    this.#resting = true
    this.#clock.after(GAP_MS, () => {
      this.#resting = false
      this.flush()
    })
  }
}

/** Returns the topics that a message of another machine names. */
export const topicsIn = (text: string): Topic[] =>
  text.split(' ').flatMap(name => {
    const topic = topicNamed(name)
    return topic && SHARED_TOPICS.includes(topic) ? [topic] : []
  })
