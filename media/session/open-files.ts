/** The recordings that calls of any client are writing, so that no file is read before it is finished. */
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

  /** Resolves when the file is not being written. */
  closed(file: string): Promise<void> {
    const waiting = this.#files.get(file)
    return waiting ? new Promise(resolve => waiting.push(resolve)) : Promise.resolve()
  }
}
