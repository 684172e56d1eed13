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

  letGo(): void {
    this.#users -= 1
    this.#release?.()
  }
}
