import { quantile } from '../set-up.ts'

/** The set-ups of calls during some work and in the peace after it, in milliseconds: as many of each. */
export interface Turn {
  readonly busy: readonly number[]
  readonly peace: readonly number[]
}

/** How much longer calls take to set up during the work than in peace, over all turns. */
interface Slowdown {
  readonly calls: number
  readonly busy_ms: number
  readonly peace_ms: number
  readonly ratio: number
  /** The standard error of the ratio, from the ratios without one turn each (jackknife). */
  readonly error: number
}

/** Compares this quantile of all turns. One turn alone says nothing of its error. */
export function slowdown(turns: readonly Turn[], part: number): Slowdown {
  const at = (some: readonly Turn[], phase: keyof Turn): number =>
    quantile(
      some.flatMap(turn => turn[phase]),
      part,
    )
  const ratioOf = (some: readonly Turn[]): number => at(some, 'busy') / at(some, 'peace')
  const without = turns.map(left_out => ratioOf(turns.filter(turn => turn !== left_out)))
  const mean = without.reduce((sum, ratio) => sum + ratio, 0) / without.length
  const squares = without.reduce((sum, ratio) => sum + (ratio - mean) ** 2, 0)
  return {
    calls: turns.reduce((sum, { busy }) => sum + busy.length, 0),
    busy_ms: at(turns, 'busy'),
    peace_ms: at(turns, 'peace'),
    ratio: ratioOf(turns),
    error: turns.length < 2 ? Number.NaN : Math.sqrt((squares * (turns.length - 1)) / turns.length),
  }
}
