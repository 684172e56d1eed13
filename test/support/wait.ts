/** Waits until `look` gives something other than undefined or false; fails with `what` after `limit_ms`. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  limit_ms = 15_000,
): Promise<T> {
  const deadline = performance.now() + limit_ms
  for (;;) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
    if (performance.now() > deadline) throw new Error(`waited ${limit_ms} ms in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
