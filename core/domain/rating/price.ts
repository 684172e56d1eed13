import { MICRO_PER_MINOR, type Tariff } from './types.ts'

// One minor unit in sixtieths of a micro unit. In this unit a second of any rate is an integer, so that a call's price
// is rounded only once.
const SAFE_SIXTIETHS_PER_MINOR = 60 * MICRO_PER_MINOR
const SIXTIETHS_PER_MINOR = BigInt(SAFE_SIXTIETHS_PER_MINOR)

const perSecond = ({ rate_micro, rate_unit }: Tariff): bigint =>
  BigInt(rate_micro) * (rate_unit === 'second' ? 60n : 1n)
const initial = (tariff: Tariff): number => Math.max(0, tariff.increment_initial_seconds)
const additional = (tariff: Tariff): number => Math.max(1, tariff.increment_additional_seconds)

/** Returns the billed seconds of a call of `seconds` (0: not answered). */
export function billedSeconds(tariff: Tariff, seconds: number): number {
  if (seconds <= 0) return 0
  const over = seconds - initial(tariff)
  if (over <= 0) return initial(tariff)
  return initial(tariff) + Math.ceil(over / additional(tariff)) * additional(tariff)
}

/** Returns the price of a call of `seconds` in minor units, rounded up once. */
export const chargeMinor = (tariff: Tariff, seconds: number): number =>
  billedMinor(tariff, billedSeconds(tariff, seconds))

/** Returns the price of whole increments. */
export function billedMinor(tariff: Tariff, billed: number): number {
  // Plain integers take a tenth of the time of big ones, and nearly every price is within them.
  const sixtieths = tariff.rate_micro * (tariff.rate_unit === 'second' ? 60 : 1) * billed
  if (sixtieths >= 0 && Number.isSafeInteger(sixtieths)) {
    const rest = sixtieths % SAFE_SIXTIETHS_PER_MINOR
    return (sixtieths - rest) / SAFE_SIXTIETHS_PER_MINOR + (rest > 0 ? 1 : 0)
  }
  return Number((perSecond(tariff) * BigInt(billed) + SIXTIETHS_PER_MINOR - 1n) / SIXTIETHS_PER_MINOR)
}

/** Returns the price of a call's first increment, which admission reserves. */
export const reservationMinor = (tariff: Tariff): number => chargeMinor(tariff, 1)

/**
 * Returns the seconds, in whole increments, that `budget_minor` pays for; null when the call is free, 0 when it cannot
 * pay for the first increment.
 */
export function affordableSeconds(tariff: Tariff, budget_minor: number): number | null {
  if (tariff.rate_micro === 0) return null
  if (budget_minor < reservationMinor(tariff)) return 0
  const seconds = (BigInt(Math.floor(budget_minor)) * SIXTIETHS_PER_MINOR) / perSecond(tariff)
  if (seconds > BigInt(Number.MAX_SAFE_INTEGER)) return Number.MAX_SAFE_INTEGER
  const first = billedSeconds(tariff, 1)
  const after = Number(seconds) - first
  return first + after - (after % additional(tariff))
}

/** Returns the price of a minute in whole minor units, rounded up, for comparison with `max_destination_rate_minor`. */
export const minuteMinor = (tariff: Tariff): number => billedMinor(tariff, 60)
