interface FairLimits {
  /** Concurrent jobs, in total and per owner. */
  readonly at_once: number
  readonly owner_at_once: number
  /** Running and waiting jobs per owner, and their bytes. */
  readonly owner_jobs: number
  readonly owner_bytes: number
}

interface Owner {
  jobs: number
  bytes: number
  running: number
  readonly waiting: (() => void)[]
}

/** Runs the jobs of owners (projects) in turn. A busy owner delays another one by at most one job. */
export class FairQueue {
  readonly #limits: FairLimits
  /** The owners in the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #running = 0

  constructor(limits: FairLimits) {
    this.#limits = limits
  }

  /** Queues a job. Returns null when the owner has reached its limits. */
  run<T>(owner: string, bytes: number, work: () => Promise<T>): Promise<T> | null {
    const { owner_jobs, owner_bytes } = this.#limits
    const known = this.#owners.get(owner) ?? { jobs: 0, bytes: 0, running: 0, waiting: [] }
    if (known.jobs >= owner_jobs || known.bytes + bytes > owner_bytes) return null
    this.#owners.set(owner, known)
    known.jobs++
    known.bytes += bytes
    return this.#inTurn(owner, known, bytes, work)
  }

  async #inTurn<T>(name: string, owner: Owner, bytes: number, work: () => Promise<T>): Promise<T> {
    const turn = new Promise<void>(resolve => owner.waiting.push(resolve))
    this.#next()
    await turn
    try {
      return await work()
    } finally {
      this.#running--
      owner.running--
      owner.jobs--
      owner.bytes -= bytes
      if (owner.jobs === 0) this.#owners.delete(name)
      this.#next()
    }
  }

  #next(): void {
    for (const [name, owner] of this.#owners) {
      if (this.#running >= this.#limits.at_once) return
      if (owner.running >= this.#limits.owner_at_once) continue
      const start = owner.waiting.shift()
      if (!start) continue
      this.#running++
      owner.running++
      // Move the owner to the end. The loop reaches it again after the others.
      this.#owners.delete(name)
      this.#owners.set(name, owner)
      start()
    }
  }
}
