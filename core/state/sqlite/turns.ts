import { systemClock } from '../../runtime/clock.ts'

/** A fair mutex: users get the resource in the order in which they called `take`. */
export class Turns {
  #tail: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined
  #users = 0

  /** Reports whether anyone holds it or waits for it. */
  get taken(): boolean {
    return this.#users > 0
  }

  /** Resolves once all earlier users have released it. */
  async take(): Promise<void> {
    this.#users += 1
    const turn = this.#tail
    let release = (): void => undefined
    this.#tail = new Promise(resolve => {
      release = resolve
    })
    await turn
    this.#release = release
  }

  /** Like `take`, unless its turn does not come within `ms`: then it resolves to false, and has none. */
  async takeWithin(ms: number): Promise<boolean> {
    if (!this.taken) {
      await this.take()
      return true
    }
    let late = false
    const turn = this.take().then(() => {
      if (late) this.letGo()
      return true
    })
    const limit = new Promise<false>(resolve => {
      const timer = systemClock.after(ms, () => {
        late = true
        resolve(false)
      })
      void turn.then(() => timer.cancel())
    })
    return Promise.race([turn, limit])
  }

  letGo(): void {
    this.#users -= 1
    this.#release?.()
  }
}
