import { StateError } from '../port.ts'

/**
 * The turns of the writers of this process: one at a time holds a connection and asks the database for its turn. The
 * others would hold all connections, and the writer that has its turn may have to read beside its transaction.
 */
export class OwnTurns {
  readonly #waiting: (() => void)[] = []
  #taken = false

  /** Resolves when all earlier writers have let go. Fails as busy after `within_ms`. @throws StateError */
  async take(within_ms: number): Promise<void> {
    if (!this.#taken) {
      this.#taken = true
      return
    }
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        clearTimeout(late)
        resolve()
      }
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1)
        reject(new StateError('other writers were not ready in time', { code: 'NO_TURN', failure: 'busy' }))
      }, within_ms)
      this.#waiting.push(go)
    })
  }

  letGo(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#taken = false
  }
}
