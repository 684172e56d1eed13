const LATEST_MS = 1000

/** Runs `work` when the page has nothing to do, so that what a person waits for comes first. Returns its cancel. */
export function whenIdle(work: () => void): () => void {
  // Safari has no idle callbacks.
  if (!('requestIdleCallback' in globalThis)) {
    const timer = setTimeout(work, LATEST_MS / 4)
    return () => clearTimeout(timer)
  }
  const asked = requestIdleCallback(work, { timeout: LATEST_MS })
  return () => cancelIdleCallback(asked)
}

let turns: Promise<void> = Promise.resolve()

/** Resolves when the page is idle, for one caller at a time, so that the parts of a page do not keep it busy. */
export function inTurn(): Promise<void> {
  turns = turns.then(() => new Promise<void>(resolve => void whenIdle(resolve)))
  return turns
}
