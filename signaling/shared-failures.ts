import { hostGroup } from '../core/domain/identity/index.ts'
import { FAILED_TRIES, type GuardedSource } from '../core/runtime/edge-link.ts'
import type { Log } from '../core/runtime/log.ts'
import type { RateAsk, RateShape, RateStore } from '../core/runtime/rate-store.ts'

const { most, window_ms, block_ms } = FAILED_TRIES
const TRIES: RateShape = { burst: most, per_second: 0, window_ms }
/** Empty when the block begins, and full when it is over. */
const BLOCK: RateShape = { burst: 1, per_second: 1000 / block_ms, window_ms: null }

const MOST_AT_ONCE = 250
/** Sources whose tries wait for the store. Each edge still counts for itself what is not taken. */
const MAX_WAITING = 5000

/** What a source has tried since the store was asked last. */
interface Tried {
  readonly source: GuardedSource
  failures: number
  /** It has proved a password. */
  proved: boolean
}

interface Options {
  /** Opens the store. Most nodes never need it. */
  readonly open: () => Promise<RateStore>
  readonly log: Log
}

/**
 * Counts the failed tries of sources at the edges of all machines together, in the store of the shared limits. An edge
 * waits for nothing: it is told afterwards whom to shut out. While the store fails, each edge counts alone.
 */
export class SharedFailures {
  readonly #options: Options
  /** Called with a source to shut out, and for how long. */
  readonly #shut: (source: GuardedSource, ms: number) => void
  readonly #waiting = new Map<string, Tried>()
  #store: Promise<RateStore> | null = null
  #asking: Promise<void> | null = null
  #told = false

  constructor(options: Options, shut: (source: GuardedSource, ms: number) => void) {
    this.#options = options
    this.#shut = shut
  }

  tried(source: GuardedSource, failed: boolean): void {
    const key = `${source.protocol}|${hostGroup(source.host)}`
    const known = this.#waiting.get(key)
    if (!known && this.#waiting.size >= MAX_WAITING) return
    const one = known ?? { source, failures: 0, proved: false }
    if (failed) one.failures++
    else Object.assign(one, { failures: 0, proved: true })
    this.#waiting.set(key, one)
    this.#asking ??= this.#askAll()
  }

  async stop(): Promise<void> {
    this.#waiting.clear()
    await this.#asking
    await (await this.#store?.catch(() => null))?.close()
  }

  async #askAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const some = [...this.#waiting].slice(0, MOST_AT_ONCE)
      for (const [key] of some) this.#waiting.delete(key)
      try {
        await this.#ask(some)
        this.#told = false
      } catch (err) {
        if (!this.#told) this.#options.log.warn({ err }, 'failed tries are not shared: each edge counts alone')
        this.#told = true
      }
    }
    this.#asking = null
  }

  async #ask(some: readonly (readonly [string, Tried])[]): Promise<void> {
    this.#store ??= this.#options.open()
    const store = await this.#store.catch(error => {
      this.#store = null
      throw error
    })
    const blockOf = (key: string, wanted: number): RateAsk => ({ name: `sip block ${key}`, ...BLOCK, wanted, back: 0 })
    const asks = some.flatMap(([key, { failures, proved }]) => [
      { name: `sip tries ${key}`, ...TRIES, wanted: failures, back: proved ? most : 0 },
      blockOf(key, 0),
    ])
    const answers = await store.draw(asks)
    const shut: (readonly [string, GuardedSource])[] = []
    for (const [at, [key, { source, failures }]] of some.entries()) {
      const [tries, block] = [answers[2 * at], answers[2 * at + 1]]
      if (!tries || !block || failures === 0) continue
      // The edge of another machine has blocked it, and this one was not told.
      if (block.left < 1) this.#shut(source, block.full_in_ms)
      else if (tries.left < 1) shut.push([key, source])
    }
    if (shut.length === 0) return
    await store.draw(shut.map(([key]) => blockOf(key, 1)))
    for (const [, source] of shut) this.#shut(source, block_ms)
  }
}
