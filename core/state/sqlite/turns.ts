/** Users of one thing, one after the other in the order in which they came. */
export class Turns {
  #tail: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined

  /** Resolves when everybody before has let go. */
  async take(): Promise<void> {
    const turn = this.#tail
    let release = (): void => undefined
    this.#tail = new Promise(resolve => {
      release = resolve
    })
    await turn
    this.#release = release
  }

  letGo(): void {
    this.#release?.()
  }
}
