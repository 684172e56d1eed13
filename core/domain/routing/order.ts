export interface RoutableTarget {
  readonly id: string
  readonly priority: number
  readonly weight: number
  readonly enabled: boolean
  /** Two keep-alives in a row were missed: tried last, never left out. */
  readonly degraded: boolean
}

/** A number in [0, 1), passed in: rules know no randomness. */
export type Random = () => number

/** Lower priority value first, shares by weight among equals (RFC 2782), degraded ones after all others. */
export function orderTargets<T extends Pick<RoutableTarget, 'priority' | 'weight' | 'degraded'>>(
  targets: readonly T[],
  random: Random,
): T[] {
  const ordered: T[] = []
  for (const degraded of [false, true]) {
    const group = targets.filter(target => target.degraded === degraded)
    for (const priority of [...new Set(group.map(target => target.priority))].sort((a, b) => a - b))
      ordered.push(
        ...byWeight(
          group.filter(target => target.priority === priority),
          random,
        ),
      )
  }
  return ordered
}

/**
 * RFC 2782: those of weight 0 stand first, so that they are seldom but sometimes chosen; a number from 0 to the sum of
 * weights picks the first whose running sum reaches it; repeated with the rest.
 */
function byWeight<T extends { readonly weight: number }>(targets: readonly T[], random: Random): T[] {
  const rest = [...targets.filter(target => target.weight <= 0), ...targets.filter(target => target.weight > 0)]
  const chosen: T[] = []
  while (rest.length > 1) {
    const total = rest.reduce((sum, target) => sum + Math.max(0, target.weight), 0)
    const pick = Math.floor(random() * (total + 1))
    let running = 0
    // Without any weight the first would always win; then all are equal.
    const index =
      total === 0
        ? Math.floor(random() * rest.length)
        : rest.findIndex(target => {
            running += Math.max(0, target.weight)
            return running >= pick
          })
    chosen.push(...rest.splice(index, 1))
  }
  return [...chosen, ...rest]
}
