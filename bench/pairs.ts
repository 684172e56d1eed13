/** How the two trees of a pair run: `before` runs on core `before_core`, and `starts_first` starts first. */
interface Turn {
  readonly before_core: 0 | 1
  readonly starts_first: 'before' | 'now'
}

interface Comparison {
  /** Means over the pairs, in the figure's own unit. */
  readonly before: number
  readonly now: number
  /** The increase from `before` to `now` in percent, from the geometric mean of the pairs' ratios. */
  readonly change_percent: number
  /** The standard error of the change, in percent. */
  readonly error_percent: number
}

/**
 * Returns the turn of pair `index` (0, 1, …). The core and the order of starting affect the figures. Four successive
 * pairs have each combination once, so both effects cancel.
 */
export function turnOf(index: number): Turn {
  return { before_core: index % 2 === 0 ? 0 : 1, starts_first: index % 4 < 2 ? 'before' : 'now' }
}

/**
 * Compares two trees by the ratios within pairs that ran concurrently. Needs at least two pairs of positive figures.
 */
export function compare(pairs: readonly (readonly [before: number, now: number])[]): Comparison {
  if (pairs.length < 2) throw new Error('a comparison needs at least two pairs')
  const logs = pairs.map(([before, now]) => Math.log(now / before))
  const center = mean(logs)
  const variance = logs.reduce((sum, log) => sum + (log - center) ** 2, 0) / (logs.length - 1)
  return {
    before: mean(pairs.map(([before]) => before)),
    now: mean(pairs.map(([, now]) => now)),
    change_percent: 100 * (Math.exp(center) - 1),
    error_percent: 100 * Math.sqrt(variance / logs.length),
  }
}

/** Returns the numbers in a benchmark's results by path: `{ full: { take_us: 280 } }` has `full.take_us`. */
export function figuresOf(results: unknown, path = ''): ReadonlyMap<string, number> {
  if (typeof results === 'number') return new Map([[path, results]])
  if (typeof results !== 'object' || results === null) return new Map()
  return new Map(
    Object.entries(results).flatMap(([name, value]) => [...figuresOf(value, path ? `${path}.${name}` : name)]),
  )
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, value) => sum + value, 0) / list.length
}
