/** Users of one thing, one after the other in the order in which they came. */
export class Turns {
  #tail: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined
  #users = 0

  /** Whether somebody has it or waits for it. */
  get taken(): boolean {
    return this.#users > 0
  }

  /** Resolves when everybody before has let go. */
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

  letGo(): void {
    this.#users -= 1
    this.#release?.()
  }
}
