/**
 * Returns the closest known word, compared case-insensitively: at most 2 edits away (1 for up to 4 letters), or null.
 */
export function closest(word: string, known: readonly string[]): string | null {
  if (word.length > 40) return null
  const lower = word.toLowerCase()
  let best: string | null = null
  let least = word.length <= 4 ? 2 : 3
  for (const candidate of known) {
    const distance = edits(lower, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Returns the Levenshtein distance, computed one row at a time. */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
