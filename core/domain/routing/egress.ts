import { orderTargets, type Random, type RoutableTarget } from './order.ts'

/** A carrier route with the targets of its carrier. */
interface CarrierRouteFacts<T extends RoutableTarget = RoutableTarget> {
  readonly carrier_id: string
  /** Digits after the plus. The empty prefix matches every number. */
  readonly prefix: string
  readonly priority: number
  readonly cost_minor: number
  readonly targets: readonly T[]
}

interface EgressFacts<T extends RoutableTarget = RoutableTarget> {
  /**
   * Termination targets of the call's trunk. REST and markup calls use the caller number's trunk (design section 4).
   */
  readonly targets: readonly T[]
  /**
   * Reports whether a target's address lies inside the trunk's own enabled sources: such a target is the peer itself.
   */
  readonly isOwnSource: (target: T) => boolean
  /** Routes of the carriers that the project may use. */
  readonly carrier_routes: readonly CarrierRouteFacts<T>[]
  /** Digits of the called number. */
  readonly digits: string
}

export interface Hop<T extends RoutableTarget = RoutableTarget> {
  readonly target: T
  /** Null when the target is one of the trunk's termination targets. */
  readonly carrier_id: string | null
  /** The carrier route's prefix, for explaining the choice. */
  readonly prefix: string | null
}

/**
 * Returns the hops for an outbound call in the order to try: the trunk's enabled targets except the peer itself. If
 * none remain, carrier routes by longest prefix, then priority, then cost. Degraded targets come last in either list.
 */
export function egress<T extends RoutableTarget>(facts: EgressFacts<T>, random: Random): Hop<T>[] {
  const own = facts.targets.filter(target => target.enabled && !facts.isOwnSource(target))
  if (own.length > 0) return orderTargets(own, random).map(target => ({ target, carrier_id: null, prefix: null }))
  return byCarrier(facts, random)
}

/**
 * Returns the hops that deliver a call to a trunk: its enabled targets. Callers append the trunk's registered contacts.
 */
export const delivery = <T extends RoutableTarget>(targets: readonly T[], random: Random): Hop<T>[] =>
  orderTargets(
    targets.filter(target => target.enabled),
    random,
  ).map(target => ({ target, carrier_id: null, prefix: null }))

function byCarrier<T extends RoutableTarget>({ carrier_routes, digits }: EgressFacts<T>, random: Random): Hop<T>[] {
  const routes = carrier_routes
    .filter(route => digits.startsWith(route.prefix))
    .sort((a, b) => b.prefix.length - a.prefix.length || a.priority - b.priority || a.cost_minor - b.cost_minor)
  const taken = new Set<string>()
  const hops: Hop<T>[] = []
  for (const { carrier_id, prefix, targets } of routes) {
    // Each carrier is tried once, for its longest matching prefix.
    if (taken.has(carrier_id)) continue
    taken.add(carrier_id)
    for (const { target } of delivery(targets, random)) hops.push({ target, carrier_id, prefix })
  }
  return [...hops.filter(({ target }) => !target.degraded), ...hops.filter(({ target }) => target.degraded)]
}
