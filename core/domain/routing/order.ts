export interface RoutableTarget extends Weighted {
  readonly id: string
  readonly enabled: boolean
  /** Two keep-alives in a row were missed: tried last, never left out. */
  readonly degraded: boolean
}

/** A number in [0, 1), passed in: rules know no randomness. */
export type Random = () => number

/** What SRV records, targets of trunks and URIs of a document have in common. */
interface Weighted {
  readonly priority: number
  readonly weight: number
}

/** Lower priority values come first; items of equal priority share by weight (RFC 2782). */
export function orderByPriority<T extends Weighted>(items: readonly T[], random: Random): T[] {
  const priorities = [...new Set(items.map(item => item.priority))].sort((a, b) => a - b)
  return priorities.flatMap(priority =>
    byWeight(
      items.filter(item => item.priority === priority),
      random,
    ),
  )
}

/** As `orderByPriority`, with degraded targets after all others. */
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
 * RFC 2782: a number up to the sum of weights picks the first whose running sum reaches it; repeated with the rest.
 * Those of weight 0 stand first and are picked by the number 0, seldom but sometimes; without any of them 0 is not
 * drawn, since it would give the first target more than its share.
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
 * Numbers for the `count`-th call of a process: over any run of calls the first choices spread evenly, so that shares
 * come out as configured within one percent where independent draws would stray by three. `start` is drawn once per
 * process.
 */
export function evenRandom(start: number, count: number): Random {
  let drawn = (start + count * GOLDEN) % 1
  return () => {
    const now = drawn
    // The choices after the first come from the low digits of this one, which say nothing about it.
    drawn = (drawn * 7919) % 1
    return now
  }
}
