/** The recordings being written by any client's call, so that nobody reads a file before it is finished. */
export class OpenFiles {
  readonly #files = new Map<string, (() => void)[]>()

  has(file: string): boolean {
    return this.#files.has(file)
  }

  begin(file: string): void {
    this.#files.set(file, [])
  }

  end(file: string): void {
    for (const waiting of this.#files.get(file) ?? []) waiting()
    this.#files.delete(file)
  }

  /** Resolves when nobody writes the file; at once when nobody does. */
  closed(file: string): Promise<void> {
    const waiting = this.#files.get(file)
    return waiting ? new Promise(resolve => waiting.push(resolve)) : Promise.resolve()
  }
}
