const STEP_MS = 250

/**
 * Calls `late` when this process has waited for `ms` and was able to hear meanwhile: time in which it was stopped, or
 * got no CPU, counts as one step. Before `late`, what has arrived is read.
 */
export function afterAwake(ms: number, late: () => void): { cancel(): void } {
  let left_ms = ms
  let done = false
  const cancel = (): void => {
    done = true
    clearInterval(stepping)
  }
  const stepping = setInterval(
    () => {
      left_ms -= STEP_MS
      if (left_ms > 0 || done) return
      clearInterval(stepping)
      void allRead().then(() => {
        if (!done) late()
      })
    },
    Math.min(ms, STEP_MS),
  )
  return { cancel }
}

/** Resolves when the event loop has read what had arrived at its sockets before. */
export async function allRead(): Promise<void> {
  // The first one may come before this round of the loop has looked at the sockets.
  for (let rounds = 0; rounds < 2; rounds++) await new Promise<void>(resolve => void setImmediate(resolve))
}
