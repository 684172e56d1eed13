import { type Clock, systemClock } from './clock.ts'

/** How often the other clock is read. */
const READ_MS = 10_000
/** The most that two clocks part from each other, in ms per ms. Crystals are ten times better. */
const DRIFT = 0.000_2

interface Reading {
  /** The other clock minus the own monotonic one. */
  readonly ahead_ms: number
  /** The most that `ahead_ms` may be wrong: half of the time that the answer took. */
  readonly doubt_ms: number
  /** On the own monotonic clock. */
  readonly at_ms: number
}

/**
 * A clock whose `now` is that of a server, such as the database that several machines share. Between two readings it
 * runs on the machine's monotonic clock, so the machine's wall clock may be wrong or jump.
 */
export class FollowedClock implements Clock {
  readonly #own: Clock
  readonly #read: () => Promise<number>
  #known: Reading
  #reading = false
  readonly #timer: { cancel(): void }

  private constructor(own: Clock, read: () => Promise<number>, first: Reading) {
    this.#own = own
    this.#read = read
    this.#known = first
    // Without an answer the clock goes on as it was. Statements that fail say that the server is away.
    this.#timer = own.every(READ_MS, () => void this.look().catch(() => undefined))
  }

  /** Begins to follow. `read` asks for the epoch milliseconds of the other clock. Rejects as the first `read` does. */
  static async follow(read: () => Promise<number>, own: Clock = systemClock): Promise<FollowedClock> {
    return new FollowedClock(own, read, await readingOf(read, own))
  }

  now(): number {
    return Math.floor(this.#own.monotonic_ms() + this.#known.ahead_ms)
  }

  monotonic_ms(): number {
    return this.#own.monotonic_ms()
  }

  after: Clock['after'] = (delay_ms, run) => this.#own.after(delay_ms, run)
  every: Clock['every'] = (period_ms, run) => this.#own.every(period_ms, run)

  /** Reads the other clock. A slow answer counts only if the clocks differ by more than both readings are in doubt. */
  async look(): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      const read = await readingOf(this.#read, this.#own)
      const doubt_ms = this.#known.doubt_ms + (read.at_ms - this.#known.at_ms) * DRIFT
      const jumped = Math.abs(read.ahead_ms - this.#known.ahead_ms) > read.doubt_ms + doubt_ms
      if (jumped || read.doubt_ms <= doubt_ms) this.#known = read
    } finally {
      this.#reading = false
    }
  }

  stop(): void {
    this.#timer.cancel()
  }
}

async function readingOf(read: () => Promise<number>, own: Clock): Promise<Reading> {
  const asked_ms = own.monotonic_ms()
  const time_ms = await read()
  const at_ms = own.monotonic_ms()
  const doubt_ms = (at_ms - asked_ms) / 2
  return { ahead_ms: time_ms - asked_ms - doubt_ms, doubt_ms, at_ms }
}
