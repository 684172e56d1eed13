/** What stands for every name without a place. */
export const OTHERS = 'other'

/**
 * The names that a metric may have as values of a label. Customers make trunks and projects without end; a metric with
 * a series for each would fill the memory of this process and of Prometheus. So at most `most` names have a place, and
 * the rest share OTHERS. A name that was idle for `idle_ms` gives its place to the next one that asks.
 */
export class LabelNames {
  /** When each name was last used, in monotonic milliseconds; the longest idle first. */
  readonly #used = new Map<string, number>()
  readonly #most: number
  readonly #idle_ms: number
  readonly #gone: (name: string) => void

  /** `gone` forgets the series of a name that loses its place. */
  constructor(options: { readonly most: number; readonly idle_ms: number; readonly gone: (name: string) => void }) {
    this.#most = options.most
    this.#idle_ms = options.idle_ms
    this.#gone = options.gone
  }

  /** Returns the value of the label for a name that is counted now. */
  labelOf(name: string, now_ms: number): string {
    if (!this.#used.delete(name) && !this.#makeRoom(now_ms)) return OTHERS
    this.#used.set(name, now_ms)
    return name
  }

  #makeRoom(now_ms: number): boolean {
    if (this.#used.size < this.#most) return true
    const [oldest] = this.#used
    if (oldest === undefined || now_ms - oldest[1] < this.#idle_ms) return false
    this.#used.delete(oldest[0])
    this.#gone(oldest[0])
    return true
  }
}
