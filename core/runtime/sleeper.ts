import type { Clock } from './clock.ts'

interface SleeperOptions {
  /** One run. What it rejects with goes to `failed`, and the next wake-up begins another. */
  readonly work: () => Promise<void>
  readonly failed: (error: unknown) => void
  /** Wakes it up every so often: a lost wake-up costs time and nothing else. */
  readonly every?: { readonly clock: Pick<Clock, 'every'>; readonly period_ms: number }
}

/** Work that wake-ups begin and that never runs twice at once: wake-ups during a run make one more run after it. */
export class Sleeper {
  readonly #work: SleeperOptions['work']
  readonly #failed: SleeperOptions['failed']
  readonly #timer: { cancel(): void } | undefined
  #running: Promise<void> | null = null
  #again = false
  #stopped = false

  constructor({ work, failed, every }: SleeperOptions) {
    this.#work = work
    this.#failed = failed
    this.#timer = every?.clock.every(every.period_ms, () => void this.wake())
  }

  /** Resolves when the run that is under way, or that begins now, has ended. Never rejects. */
  wake(): Promise<void> {
    if (this.#stopped) return this.#running ?? Promise.resolve()
    if (this.#running) {
      this.#again = true
      return this.#running
    }
    this.#running = this.#work()
      .catch(this.#failed)
      .then(() => {
        this.#running = null
        if (!this.#again) return
        this.#again = false
        void this.wake()
      })
    return this.#running
  }

  /** Resolves when the run that is under way has ended; no other begins. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#running
  }
}
