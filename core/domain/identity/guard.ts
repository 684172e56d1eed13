/** Design section 4: an unknown source that fails 5 times in 60 s is dropped silently for 15 min. */
export const GUARD = { failures: 5, within_ms: 60_000, blocked_ms: 15 * 60_000, max_sources: 50_000 } as const

/** Failures per source address; times are of a clock that never jumps. Owned by one process, bounded. */
export interface SourceGuard {
  readonly sources: Map<string, { failures: number[]; blocked_until_ms: number }>
}

export const createGuard = (): SourceGuard => ({ sources: new Map() })

/** Whether a packet of this source is dropped before it is looked at. Never ask for configured sources. */
export function isBlocked(guard: SourceGuard, address: string, now_ms: number): boolean {
  const known = guard.sources.get(address)
  return known !== undefined && now_ms < known.blocked_until_ms
}

/** Notes a failed identification; true when this one blocks the source (count it, and raise `new_source_ip`). */
export function noteFailure(guard: SourceGuard, address: string, now_ms: number): boolean {
  const known = guard.sources.get(address) ?? { failures: [], blocked_until_ms: 0 }
  // Taken out and put back: the map's order is then that of the last failure, and the first is the one to forget.
  guard.sources.delete(address)
  guard.sources.set(address, known)
  if (guard.sources.size > GUARD.max_sources) forgetFirst(guard)
  known.failures = [...known.failures.filter(at => now_ms - at < GUARD.within_ms), now_ms]
  if (known.failures.length < GUARD.failures) return false
  known.failures = []
  known.blocked_until_ms = now_ms + GUARD.blocked_ms
  return true
}

/** A source that authenticated is no scanner. */
export const noteSuccess = (guard: SourceGuard, address: string): void => {
  guard.sources.delete(address)
}

function forgetFirst(guard: SourceGuard): void {
  const first = guard.sources.keys().next().value
  if (first !== undefined) guard.sources.delete(first)
}
