interface Job {
  readonly alone: boolean
  readonly run: () => Promise<void>
}

/** Runs jobs in order: a job that is alone after all before it, others beside each other up to `jobs`. */
export class Queue {
  jobs: number
  readonly #waiting: Job[] = []
  #active = 0
  /** True while the running job wants to be alone. */
  #alone = false
  #idle: (() => void)[] = []

  constructor(jobs: number) {
    this.jobs = jobs
  }

  get busy(): boolean {
    return this.#active > 0 || this.#waiting.length > 0
  }

  /** Starts the job at once when it may start. The promise is kept when the job has ended. */
  add(alone: boolean, run: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ alone, run: () => run().then(resolve, reject) })
      this.#next()
    })
  }

  /** Forgets the jobs that have not started. Their promises stay open. */
  clear(): void {
    this.#waiting.length = 0
  }

  idle(): Promise<void> {
    return this.busy ? new Promise(resolve => this.#idle.push(resolve)) : Promise.resolve()
  }

  #next(): void {
    for (;;) {
      const [job] = this.#waiting
      if (job === undefined || this.#alone) break
      if (job.alone ? this.#active > 0 : this.#active >= this.jobs) break
      this.#waiting.shift()
      this.#active++
      this.#alone = job.alone
      void job.run().finally(() => {
        this.#active--
        this.#alone = false
        this.#next()
      })
    }
    if (this.busy) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
