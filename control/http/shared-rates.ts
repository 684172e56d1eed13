import { hash } from 'node:crypto'
import { boundedMap } from '../../core/domain/bounded-map.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { RateAnswer, RateShape, RateStore } from '../../core/runtime/rate-store.ts'
import { headersOf, type RateVerdict } from './rate-limit.ts'

const MAX_KEYS = 20_000
/** Keys of one message: a flood of keys must not make one long message that others wait for. */
const MOST_AT_ONCE = 500
/** A key that asks again within this time gets a part of its limit ahead. What it does not use goes back after it. */
const BUSY_MS = 1000
/** The part that one machine may hold. */
const PART = 20
/** How long a refusal holds here without another look: elsewhere the limit may be refilled. */
const MOST_REFUSED_MS = 1000
/** How long this machine counts alone after the store has failed. */
const ALONE_MS = 1000
const PRUNE_MS = 60_000

interface Waiter {
  readonly epoch_ms: number
  settle(verdict: RateVerdict): void
  /** Counts on this machine alone. */
  alone(): RateVerdict
}

/** A key as this machine sees it. */
interface Key {
  readonly name: string
  readonly shape: RateShape
  /** Grants that were not used yet. */
  kept: number
  /** Those of a window end with it. */
  kept_until_ms: number
  used_ms: number
  asked_ms: number
  refused_until_ms: number
  /** What goes back with the next ask. */
  back: number
  last: RateAnswer
  readonly waiting: Waiter[]
}

/**
 * Counts requests for all machines in a store. A busy key draws its requests in parts, so that most of them ask nobody;
 * one that is used up is refused here. Asks of all keys travel together, one message at a time. While the store fails,
 * each machine counts alone.
 */
export class SharedRates {
  readonly #store: RateStore
  readonly #clock: Clock
  readonly #log: Log
  readonly #keys = boundedMap<string, Key>(MAX_KEYS)
  /** Keys that have something to ask. */
  readonly #due = new Set<Key>()
  readonly #holding = new Set<Key>()
  readonly #timers: readonly Timer[]
  #asking = false
  #alone_until_ms = Number.NEGATIVE_INFINITY
  #told = false

  constructor(store: RateStore, clock: Clock, log: Log) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    const pruned = (): void => void store.prune().catch(err => log.debug({ err }, 'full limits stay in the store'))
    this.#timers = [clock.every(BUSY_MS, () => this.#giveBack()), clock.every(PRUNE_MS, pruned)]
  }

  /** Takes one request of `key` from the limit `name`. `alone` decides when the store cannot. */
  take(name: string, shape: RateShape, key: string, at: Waiter['epoch_ms'], alone: () => RateVerdict) {
    const now_ms = this.#clock.monotonic_ms()
    if (now_ms < this.#alone_until_ms) return alone()
    const one = this.#keyOf(name, shape, key)
    if (one.kept >= 1 && now_ms < one.kept_until_ms) {
      one.kept--
      one.used_ms = now_ms
      return verdictOf(one, true, at)
    }
    if (now_ms < one.refused_until_ms) return verdictOf(one, false, at)
    return new Promise<RateVerdict>(settle => {
      one.waiting.push({ epoch_ms: at, settle, alone })
      this.#ask(one)
    })
  }

  /** Refills a key. */
  forget(name: string, shape: RateShape, key: string): void {
    const one = this.#keyOf(name, shape, key)
    one.back = shape.burst
    one.refused_until_ms = 0
    this.#ask(one)
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.#store.close()
  }

  #keyOf(limit: string, shape: RateShape, key: string): Key {
    // Keys are others' texts, of any length.
    const name = `${limit} ${hash('sha256', key, 'base64url').slice(0, 27)}`
    const known = this.#keys.get(name)
    if (known) return known
    const last = { granted: 0, left: shape.burst, full_in_ms: 0 }
    const times = { used_ms: 0, asked_ms: Number.NEGATIVE_INFINITY, refused_until_ms: 0 }
    const made: Key = { name, shape, kept: 0, kept_until_ms: 0, back: 0, last, ...times, waiting: [] }
    this.#keys.set(name, made)
    return made
  }

  #ask(key: Key): void {
    this.#due.add(key)
    if (!this.#asking) void this.#askAll()
  }

  async #askAll(): Promise<void> {
    this.#asking = true
    // Those of this turn of the event loop go together.
    await null
    while (this.#due.size > 0) {
      const keys = [...this.#due].slice(0, MOST_AT_ONCE)
      for (const key of keys) this.#due.delete(key)
      await this.#draw(keys)
    }
    this.#asking = false
  }

  async #draw(keys: readonly Key[]): Promise<void> {
    const now_ms = this.#clock.monotonic_ms()
    const asked = keys.map(key => {
      const waiting = key.waiting.splice(0)
      const busy = now_ms - key.asked_ms < BUSY_MS && waiting.length > 0
      const ahead = busy ? Math.floor(key.shape.burst / PART) : 0
      const { name, shape, back } = key
      key.back = 0
      key.asked_ms = now_ms
      return { key, waiting, ask: { name, ...shape, wanted: waiting.length + ahead, back } }
    })
    try {
      const answers = await this.#store.draw(asked.map(({ ask }) => ask))
      this.#told = false
      for (const [at, { key, waiting }] of asked.entries()) this.#settle(key, waiting, answers[at])
    } catch (err) {
      if (!this.#told) this.#log.warn({ err }, 'rate limits are not shared: each machine counts alone')
      this.#told = true
      this.#alone_until_ms = this.#clock.monotonic_ms() + ALONE_MS
      for (const { waiting } of asked) for (const one of waiting) one.settle(one.alone())
    }
  }

  #settle(key: Key, waiting: readonly Waiter[], answer: RateAnswer = key.last): void {
    const { granted, left } = answer
    key.last = answer
    key.used_ms = this.#clock.monotonic_ms()
    if (key.used_ms >= key.kept_until_ms) key.kept = 0
    key.kept += Math.max(0, granted - waiting.length)
    key.kept_until_ms = key.shape.window_ms === null ? Number.POSITIVE_INFINITY : key.used_ms + answer.full_in_ms
    if (key.kept > 0) this.#holding.add(key)
    if (granted < waiting.length) {
      const { per_second, window_ms } = key.shape
      const next_ms = window_ms === null ? ((1 - left) / per_second) * 1000 : answer.full_in_ms
      key.refused_until_ms = key.used_ms + Math.min(MOST_REFUSED_MS, next_ms)
    }
    for (const [at, one] of waiting.entries()) one.settle(verdictOf(key, at < granted, one.epoch_ms))
  }

  /** Gives back what keys have not used for a while, for the other machines. */
  #giveBack(): void {
    const now_ms = this.#clock.monotonic_ms()
    for (const key of this.#holding) {
      if (now_ms - key.used_ms < BUSY_MS && key.kept > 0) continue
      this.#holding.delete(key)
      // What was granted in one window is not of the next one.
      if (key.kept > 0 && key.shape.window_ms === null) {
        key.back += key.kept
        this.#ask(key)
      }
      key.kept = 0
    }
  }
}

function verdictOf({ shape, kept, last }: Key, allowed: boolean, epoch_ms: number): RateVerdict {
  const left = last.left + kept
  const wait_s = shape.window_ms === null ? (1 - left) / shape.per_second : last.full_in_ms / 1000
  const full_in_seconds = last.full_in_ms / 1000
  return { allowed, headers: headersOf({ burst: shape.burst, left, full_in_seconds, epoch_ms, allowed, wait_s }) }
}
