import { affordableSeconds, billedSeconds, reservationMinor } from '../rating/price.ts'
import type { AdmissionFacts, LevelFacts } from './types.ts'

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
  let longest: number | null = null
  for (const level of facts.levels) longest = lesser(longest, level.max_call_duration_seconds)
  const paid = paidSeconds(facts)
  if (paid !== null && (longest === null || paid < longest))
    return { max_duration_seconds: paid, max_duration_reason: 'spend_exhausted' }
  return { max_duration_seconds: longest, max_duration_reason: longest === null ? null : 'max_duration' }
}

function paidSeconds(facts: AdmissionFacts): number | null {
  const rate = chargedBy(facts)
  if (!rate) return null
  const { levels, balance } = facts
  let budget = balance.available_minor
  for (const { daily_spend, velocity } of levels) budget = lesser(lesser(budget, leftOf(daily_spend)), leftOf(velocity))
  return budget === null ? null : affordableSeconds(rate, budget)
}

const leftOf = ({ limit, used }: LevelFacts['velocity']): number | null =>
  limit === null ? null : Math.max(0, limit - used)

/** Null stands for no limit. */
const lesser = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other)
