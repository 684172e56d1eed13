/** Plans the steps from the current carriers to the ones that a declarative file describes. */

export interface CarrierWish {
  readonly name: string
  readonly enabled: boolean
  readonly codecs: readonly string[]
  /** Where a 3xx of the carrier may send a call; unset means off. */
  readonly redirects?: 'off' | 'same_host' | 'listed'
  /** CIDRs from which the carrier sends INVITEs. */
  readonly sources: readonly string[]
  readonly targets: readonly {
    readonly sip_uri: string
    readonly transport: 'udp' | 'tcp' | 'tls'
    readonly priority: number
    readonly weight: number
    /** How we verify the target's TLS certificate; unset means by chain and name. */
    readonly tls_verification?: 'required' | 'pinned' | 'off'
    readonly tls_fingerprint?: string | null
  }[]
  /** `prefix` is the leading digits of the number; empty matches every number. Costs are minor units per minute. */
  readonly routes: readonly { readonly prefix: string; readonly priority: number; readonly cost_minor: number }[]
}

interface Difference<T> {
  readonly added: readonly T[]
  readonly removed: readonly T[]
}

export interface CarrierChange {
  readonly do: 'change'
  readonly id: string
  readonly wish: CarrierWish
  readonly was: Pick<CarrierWish, 'name' | 'enabled' | 'codecs' | 'redirects'>
  readonly sources: Difference<string>
  readonly targets: Difference<CarrierWish['targets'][number]>
  readonly routes: Difference<CarrierWish['routes'][number]>
}

export type CarrierStep =
  | { readonly do: 'add'; readonly wish: CarrierWish }
  | { readonly do: 'remove'; readonly id: string; readonly name: string }
  | CarrierChange

/**
 * Returns the steps from the current carriers to the wished ones, matched by name. Applying the same file twice gives
 * no steps. Carriers that the file does not name stay, unless `prune` is set.
 */
export function planCarriers(
  current: readonly (CarrierWish & { readonly id: string })[],
  wished: readonly CarrierWish[],
  { prune }: { readonly prune: boolean },
): readonly CarrierStep[] {
  const steps: CarrierStep[] = []
  for (const wish of wished) {
    const known = current.find(({ name }) => name === wish.name)
    if (!known) {
      steps.push({ do: 'add', wish })
      continue
    }
    const change = planChange(known, wish)
    if (change) steps.push(change)
  }
  if (prune)
    for (const { id, name } of current)
      if (!wished.some(wish => wish.name === name)) steps.push({ do: 'remove', id, name })
  return steps
}

/** Returns the step from a carrier to the wished one, or null when they are the same. */
export function planChange(known: CarrierWish & { readonly id: string }, wish: CarrierWish): CarrierChange | null {
  const sources = differenceOf(known.sources, wish.sources, cidr => cidr)
  const targets = differenceOf(known.targets, wish.targets, targetText)
  const routes = differenceOf(known.routes, wish.routes, routeText)
  const same =
    [sources, targets, routes].every(({ added, removed }) => added.length + removed.length === 0) &&
    known.name === wish.name &&
    known.enabled === wish.enabled &&
    redirectsText(known) === redirectsText(wish) &&
    known.codecs.join() === wish.codecs.join()
  return same ? null : { do: 'change', id: known.id, wish, was: known, sources, targets, routes }
}

/** Describes the steps for people, one line per addition (+), removal (-) or change (~). */
export function describePlan(steps: readonly CarrierStep[]): readonly string[] {
  return steps.flatMap(step => {
    if (step.do === 'remove') return [`- carrier ${step.name}`]
    const { wish } = step
    if (step.do === 'add')
      return [
        `+ carrier ${wish.name}${wish.enabled ? '' : ' (disabled)'}, ${wish.codecs.join(',')}${redirectsText(wish)}`,
        ...lines('+', wish.sources, wish.targets, wish.routes),
      ]
    const { was, sources, targets, routes } = step
    return [
      `~ carrier ${wish.name}`,
      ...(was.enabled === wish.enabled ? [] : [`  ~ ${wish.enabled ? 'enabled' : 'disabled'}`]),
      ...(was.codecs.join() === wish.codecs.join() ? [] : [`  ~ codecs ${was.codecs.join()} to ${wish.codecs.join()}`]),
      ...(redirectsText(was) === redirectsText(wish) ? [] : [`  ~${redirectsText(wish) || ' redirects off'}`]),
      ...lines('-', sources.removed, targets.removed, routes.removed),
      ...lines('+', sources.added, targets.added, routes.added),
    ]
  })
}

export const redirectsText = ({ redirects = 'off' }: Pick<CarrierWish, 'redirects'>): string =>
  redirects === 'off' ? '' : ` redirects ${redirects}`

const targetText = (target: CarrierWish['targets'][number]): string =>
  `${target.sip_uri} ${target.transport} priority ${target.priority} weight ${target.weight}${tlsText(target)}`

export const tlsText = ({
  tls_verification = 'required',
  tls_fingerprint,
}: Pick<CarrierWish['targets'][number], 'tls_verification' | 'tls_fingerprint'>): string =>
  tls_verification === 'required' ? '' : ` certificate ${tls_fingerprint ?? 'not verified'}`

const routeText = (route: CarrierWish['routes'][number]): string =>
  `${route.prefix === '' ? 'any' : route.prefix} priority ${route.priority} cost ${route.cost_minor}`

const lines = (
  sign: '+' | '-',
  sources: CarrierWish['sources'],
  targets: CarrierWish['targets'],
  routes: CarrierWish['routes'],
): string[] => [
  ...sources.map(cidr => `  ${sign} from ${cidr}`),
  ...targets.map(target => `  ${sign} to ${targetText(target)}`),
  ...routes.map(route => `  ${sign} route ${routeText(route)}`),
]

function differenceOf<T>(was: readonly T[], is: readonly T[], textOf: (item: T) => string): Difference<T> {
  const before = new Set(was.map(textOf))
  const after = new Set(is.map(textOf))
  return {
    added: is.filter(item => !before.has(textOf(item))),
    removed: was.filter(item => !after.has(textOf(item))),
  }
}
