import type { Clock } from './clock.ts'

interface SleeperOptions {
  /**
   * One run. A long one ends early when `goesOn` says that it is stopped. `failed` gets its rejection; the next wake-up
   * starts another run.
   */
  readonly work: (goesOn: () => boolean) => Promise<void>
  readonly failed: (error: unknown) => void
  /** Periodic wake-ups. With them, a lost wake-up costs only latency. */
  readonly every?: { readonly clock: Pick<Clock, 'every'>; readonly period_ms: number }
}

/** Runs work on wake-ups, never concurrently. Any number of wake-ups during a run cause one more run after it. */
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

  /** Starts a run unless one is in progress. Resolves when the current run has ended; never rejects. */
  wake(): Promise<void> {
    if (this.#stopped) return this.#running ?? Promise.resolve()
    if (this.#running) {
      this.#again = true
      return this.#running
    }
    this.#running = this.#work(() => !this.#stopped)
      .catch(this.#failed)
      .then(() => {
        this.#running = null
        if (!this.#again) return
        this.#again = false
        void this.wake()
      })
    return this.#running
  }

  /** Starts no further run and resolves when the current one has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#running
  }
}
