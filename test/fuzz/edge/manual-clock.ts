import type { Clock } from '../../../core/runtime/clock.ts'

/** A clock that moves only when `advance` is called. */
export class ManualClock implements Clock {
  #now = 1_000_000
  #order = 0
  readonly #timers = new Map<number, { due: number; run: () => void; period: number }>()

  get pending(): number {
    return this.#timers.size
  }

  now(): number {
    return 1_700_000_000_000 + this.#now
  }

  monotonic_ms(): number {
    return this.#now
  }

  after(delay_ms: number, run: () => void): { cancel(): void } {
    return this.#add(delay_ms, run, 0)
  }

  every(period_ms: number, run: () => void): { cancel(): void } {
    return this.#add(period_ms, run, period_ms)
  }

  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      let next: [number, { due: number; run: () => void; period: number }] | undefined
      for (const entry of this.#timers) if (entry[1].due <= end && (!next || entry[1].due < next[1].due)) next = entry
      if (!next) break
      const [id, timer] = next
      this.#now = Math.max(this.#now, timer.due)
      if (timer.period > 0) timer.due += timer.period
      else this.#timers.delete(id)
      timer.run()
    }
    this.#now = end
  }

  #add(delay_ms: number, run: () => void, period: number): { cancel(): void } {
    const id = ++this.#order
    this.#timers.set(id, { due: this.#now + delay_ms, run, period })
    return { cancel: () => void this.#timers.delete(id) }
  }
}
