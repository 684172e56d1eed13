import type { DestinationCountry, Rate } from './api-types.ts'

/** What a minute to a country costs, in minor units: from the cheapest to the dearest of its prefixes. */
interface MinuteRate {
  readonly low_minor: number
  readonly high_minor: number
}

/** A country, and what a minute to it costs; null where it is not covered. */
export interface RatedCountry {
  readonly country: DestinationCountry
  readonly rate: MinuteRate | null
}

const minuteMinor = ({ rate_minor, rate_unit }: Rate): number => (rate_unit === 'minute' ? rate_minor : rate_minor * 60)

/**
 * Returns what a minute to a country costs; null where no rate with a route covers it. Its own prefixes count, and for
 * its other numbers the longest rate around its calling code, as a call is rated by its longest prefix.
 */
export function minuteRateOf(
  { calling_code }: Pick<DestinationCountry, 'calling_code'>,
  rates: readonly Rate[],
): MinuteRate | null {
  const code = `+${calling_code}`
  const around = rates
    .filter(({ match }) => code.startsWith(match))
    .sort((one, other) => other.match.length - one.match.length)
  const within = rates.filter(({ match }) => match.startsWith(code) && match !== code)
  const minutes = [...around.slice(0, 1), ...within].map(minuteMinor)
  return minutes.length === 0 ? null : { low_minor: Math.min(...minutes), high_minor: Math.max(...minutes) }
}

/** Divides prices into at most `most` bands with as many different prices each. Returns the highest price of each. */
export function bandsOf(prices: readonly number[], most: number): readonly number[] {
  const sorted = [...new Set(prices)].sort((one, other) => one - other)
  const bands = Math.min(most, sorted.length)
  return Array.from({ length: bands }, (_, band) => sorted[Math.ceil(((band + 1) * sorted.length) / bands) - 1] ?? 0)
}
