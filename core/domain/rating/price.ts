import { MICRO_PER_MINOR, type Tariff } from './types.ts'

// One minor unit in sixtieths of a micro unit: in these a second of any rate is an integer, so nothing is rounded
// before the one rounding per call.
const SIXTIETHS_PER_MINOR = 60n * BigInt(MICRO_PER_MINOR)

const perSecond = ({ rate_micro, rate_unit }: Tariff): bigint =>
  BigInt(rate_micro) * (rate_unit === 'second' ? 60n : 1n)
const initial = (tariff: Tariff): number => Math.max(0, tariff.increment_initial_seconds)
const additional = (tariff: Tariff): number => Math.max(1, tariff.increment_additional_seconds)

/** Seconds that are billed for a call of `seconds` (0: not answered, or nothing said). */
export function billedSeconds(tariff: Tariff, seconds: number): number {
  if (seconds <= 0) return 0
  const over = seconds - initial(tariff)
  if (over <= 0) return initial(tariff)
  return initial(tariff) + Math.ceil(over / additional(tariff)) * additional(tariff)
}

/** Price of a call of `seconds` in minor units, rounded up once. */
export const chargeMinor = (tariff: Tariff, seconds: number): number =>
  billedMinor(tariff, billedSeconds(tariff, seconds))

/** Price of seconds that are whole increments already. */
export const billedMinor = (tariff: Tariff, billed: number): number =>
  Number((perSecond(tariff) * BigInt(billed) + SIXTIETHS_PER_MINOR - 1n) / SIXTIETHS_PER_MINOR)

/** Admission reserves the price of a call's first increment. */
export const reservationMinor = (tariff: Tariff): number => chargeMinor(tariff, 1)

/**
 * Seconds that `budget_minor` pays for, whole increments; null when the call costs nothing, 0 when not even the first
 * increment can be paid.
 */
export function affordableSeconds(tariff: Tariff, budget_minor: number): number | null {
  const rate = perSecond(tariff)
  if (rate === 0n) return null
  if (budget_minor < reservationMinor(tariff)) return 0
  const seconds = (BigInt(Math.floor(budget_minor)) * SIXTIETHS_PER_MINOR) / rate
  const first = BigInt(billedSeconds(tariff, 1))
  const step = BigInt(additional(tariff))
  const paid = first + ((seconds - first) / step) * step
  return paid > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(paid)
}

/** Price of a minute in whole minor units, rounded up: what `max_destination_rate_minor` is compared with. */
export const minuteMinor = (tariff: Tariff): number => billedMinor(tariff, 60)
