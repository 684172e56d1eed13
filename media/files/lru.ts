/** A cache limited by bytes. It evicts the least recently used entries. */
export class Lru<V> {
  readonly #entries = new Map<string, { value: V; bytes: number }>()
  readonly #max_bytes: number
  #bytes = 0

  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Adds a value. A value larger than the whole cache is not kept. */
  set(key: string, value: V, bytes: number): void {
    this.delete(key)
    if (bytes > this.#max_bytes) return
    this.#entries.set(key, { value, bytes })
    this.#bytes += bytes
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#max_bytes) break
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }

  get bytes(): number {
    return this.#bytes
  }
}
