/** The default limit of waits. It is generous because test machines are busy; an unused limit costs nothing. */
export const PATIENCE_MS = 90_000

/** What the open waits of this process wait for. A test that reaches its time limit prints them. */
export const pendingWaits = new Set<{ readonly what: string }>()

/** Bounds of the time between two looks. Most looks ask a process of the platform, which costs CPU time. */
const LOOK_AGAIN_MS = { least: 10, most: 150 }

/** The longest time between two looks at metrics: each asks all processes of a platform. */
export const SCRAPE_AGAIN_MS = 500

/**
 * Waits until `look` returns a value other than undefined, null or false. Fails with `what` after `limit_ms`. It looks
 * often at first and less often the longer it waits: after a tenth of the time so far, at the latest after `most_ms`.
 * A look that does not end, such as a request without an answer, fails it too, `PATIENCE_MS` later.
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  limit_ms = PATIENCE_MS,
  most_ms = LOOK_AGAIN_MS.most,
): Promise<T> {
  const begun_ms = performance.now()
  const wait = { what }
  pendingWaits.add(wait)
  let unended: NodeJS.Timeout | undefined
  const endless = new Promise<never>((_resolve, reject) => {
    const fail = () => reject(new Error(`timed out: ${what}; the last look has not ended`))
    unended = setTimeout(fail, limit_ms + PATIENCE_MS)
  })
  try {
    for (;;) {
      const seen = await Promise.race([look(), endless])
      if (seen !== undefined && seen !== null && seen !== false) return seen
      const waited_ms = performance.now() - begun_ms
      if (waited_ms > limit_ms) throw new Error(`timed out after ${limit_ms} ms: ${what}`)
      const pause_ms = Math.min(most_ms, Math.max(LOOK_AGAIN_MS.least, waited_ms / 10))
      await new Promise(resolve => setTimeout(resolve, pause_ms))
    }
  } finally {
    clearTimeout(unended)
    pendingWaits.delete(wait)
  }
}
