import type { Rate } from './types.ts'

/** Rates of a price book by prefix. A lookup costs one step per digit, however many rates exist. */
interface CompiledRates {
  readonly by_prefix: ReadonlyMap<string, Rate>
  readonly longest: number
}

export function compileRates(rates: Iterable<Rate>): CompiledRates {
  const by_prefix = new Map<string, Rate>()
  let longest = 0
  for (const rate of rates) {
    by_prefix.set(rate.prefix, rate)
    longest = Math.max(longest, rate.prefix.length)
  }
  return { by_prefix, longest }
}

/** Finds the rate of the longest prefix of `digits`; null for a coverage gap. */
export function findRate({ by_prefix, longest }: CompiledRates, digits: string): Rate | null {
  for (let length = Math.min(longest, digits.length); length >= 0; length--) {
    const rate = by_prefix.get(digits.slice(0, length))
    if (rate) return rate
  }
  return null
}
