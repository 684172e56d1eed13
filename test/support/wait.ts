/** The default limit of waits. It is generous because test machines are busy; an unused limit costs nothing. */
export const PATIENCE_MS = 90_000

/** What the open waits of this process wait for. A test that reaches its time limit prints them. */
export const pendingWaits = new Set<{ readonly what: string }>()

/** Waits until `look` returns a value other than undefined, null or false. Fails with `what` after `limit_ms`. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  limit_ms = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + limit_ms
  const wait = { what }
  pendingWaits.add(wait)
  try {
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== null && seen !== false) return seen
      if (performance.now() > deadline) throw new Error(`timed out after ${limit_ms} ms: ${what}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  } finally {
    pendingWaits.delete(wait)
  }
}
