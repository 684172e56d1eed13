interface FairLimits {
  /** Jobs under way at once, of all and of one owner. */
  readonly at_once: number
  readonly owner_at_once: number
  /** Of one owner, under way or waiting. */
  readonly owner_jobs: number
  readonly owner_bytes: number
}

interface Owner {
  jobs: number
  bytes: number
  running: number
  readonly waiting: (() => void)[]
}

/** Work that owners (projects) ask for, done in turn: one with much to do delays another by one job at most. */
export class FairQueue {
  readonly #limits: FairLimits
  /** In the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #running = 0

  constructor(limits: FairLimits) {
    this.#limits = limits
  }

  /** Null when the owner has its share already. */
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
      // Behind the others; the loop comes to it again when they have had their turn.
      this.#owners.delete(name)
      this.#owners.set(name, owner)
      start()
    }
  }
}
