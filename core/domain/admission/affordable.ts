import { affordableSeconds, billedSeconds, reservationMinor } from '../rating/price.ts'
import type { AdmissionFacts } from './types.ts'

/** Returns the rate by which a call is charged; null for one that costs nothing. */
const chargedBy = ({ billing, rate }: AdmissionFacts) => (billing === 'rated' ? rate : null)

/** Returns the money to hold before the call leaves: the price of its first increment, or 0 when it is not billed. */
export function heldMinor(facts: AdmissionFacts): number {
  const rate = chargedBy(facts)
  return rate ? reservationMinor(rate) : 0
}

/** Returns the seconds that the first increment pays for; null for a call that costs nothing. */
export function paidUntil(facts: AdmissionFacts): number | null {
  const rate = chargedBy(facts)
  return rate && rate.rate_micro !== 0 ? billedSeconds(rate, 1) : null
}

interface Affordable {
  readonly max_duration_seconds: number | null
  readonly max_duration_reason: 'max_duration' | 'spend_exhausted' | null
}

/** Returns the minimum of every max_call_duration and of the seconds that spend caps and balance can still pay. */
export function affordable(facts: AdmissionFacts): Affordable {
  const longest = least(facts.levels.map(level => level.max_call_duration_seconds))
  const paid = paidSeconds(facts)
  if (paid !== null && (longest === null || paid < longest))
    return { max_duration_seconds: paid, max_duration_reason: 'spend_exhausted' }
  return { max_duration_seconds: longest, max_duration_reason: longest === null ? null : 'max_duration' }
}

function paidSeconds(facts: AdmissionFacts): number | null {
  const rate = chargedBy(facts)
  if (!rate) return null
  const { levels, balance } = facts
  const budget = least([
    balance.available_minor,
    ...levels.flatMap(({ daily_spend, velocity }) =>
      [daily_spend, velocity].map(({ limit, used }) => (limit === null ? null : Math.max(0, limit - used))),
    ),
  ])
  return budget === null ? null : affordableSeconds(rate, budget)
}

const least = (values: readonly (number | null)[]): number | null =>
  values.reduce<number | null>(
    (min, value) => (value === null ? min : min === null ? value : Math.min(min, value)),
    null,
  )
