export interface RoutableTarget extends Weighted {
  readonly id: string
  readonly enabled: boolean
  /** The target missed two consecutive keep-alives. Degraded targets are tried last but never skipped. */
  readonly degraded: boolean
}

/** Returns a number in [0, 1). Callers pass it in, so that the rules stay pure. */
export type Random = () => number

/** The ordering fields that SRV records, trunk targets and the URIs of a document share. */
interface Weighted {
  readonly priority: number
  readonly weight: number
}

/** Orders items by ascending priority value, and randomly by weight within one priority (RFC 2782). */
export function orderByPriority<T extends Weighted>(items: readonly T[], random: Random): T[] {
  const priorities = [...new Set(items.map(item => item.priority))].sort((a, b) => a - b)
  return priorities.flatMap(priority =>
    byWeight(
      items.filter(item => item.priority === priority),
      random,
    ),
  )
}

/** Like `orderByPriority`, but places degraded targets after all others. */
export const orderTargets = <T extends Weighted & Pick<RoutableTarget, 'degraded'>>(
  targets: readonly T[],
  random: Random,
): T[] =>
  [false, true].flatMap(degraded =>
    orderByPriority(
      targets.filter(target => target.degraded === degraded),
      random,
    ),
  )

/**
 * Implements the selection of RFC 2782: draws a number up to the sum of weights, picks the first target whose running
 * sum reaches it, and repeats with the rest. Targets of weight 0 come first, and only the number 0 picks them. Without
 * such targets 0 is not drawn, because it would give the first target more than its share.
 */
function byWeight<T extends { readonly weight: number }>(targets: readonly T[], random: Random): T[] {
  const rest = [...targets.filter(target => target.weight <= 0), ...targets.filter(target => target.weight > 0)]
  const chosen: T[] = []
  while (rest.length > 1) chosen.push(...rest.splice(pickIndex(rest, random()), 1))
  return [...chosen, ...rest]
}

function pickIndex(targets: readonly { readonly weight: number }[], drawn: number): number {
  const total = targets.reduce((sum, target) => sum + Math.max(0, target.weight), 0)
  if (total === 0) return Math.floor(drawn * targets.length)
  const least = targets.some(target => target.weight <= 0) ? 0 : 1
  const pick = least + Math.floor(drawn * (total + 1 - least))
  let running = 0
  return targets.findIndex(target => {
    running += Math.max(0, target.weight)
    return running >= pick
  })
}

// Fractional part of the golden ratio: its multiples fill [0, 1) as evenly as any sequence can.
const GOLDEN = 0.6180339887498949

/**
 * Returns the draws for the `count`-th call of a process. The first draws of successive calls spread evenly, so traffic
 * shares stay within one percent of the configured weights, where independent draws would deviate by three. `start` is
 * drawn once per process.
 */
export function evenRandom(start: number, count: number): Random {
  let drawn = (start + count * GOLDEN) % 1
  return () => {
    const now = drawn
    // Later draws come from the low digits of this one, which do not correlate with its value.
    drawn = (drawn * 7919) % 1
    return now
  }
}
