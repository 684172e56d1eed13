import type { ClaimStanding } from './claims.ts'
import { compileSources, holdsAddress, matchSources, type SourceEntry, type SourceIndex } from './sources.ts'

/** The fields of a trunk that identification needs. */
interface KnownTrunk<Owner> {
  readonly owner: Owner
  /** `<trunk id without trk_>.sip.<domain>` */
  readonly signaling_fqdn: string
  readonly auth_mode: 'ip_allow_list' | 'digest'
  /** Only enabled and approved sources. */
  readonly sources: readonly {
    readonly cidr: string
    readonly selector_precedence: number
    readonly standing: ClaimStanding
  }[]
  /** `sources`, compiled. */
  readonly source_index: SourceIndex<unknown>
}

interface KnownCarrier<Owner> {
  readonly owner: Owner
  readonly sources: readonly string[]
}

/** The lookup tables that attribute a request to its owner, compiled once per configuration change. */
export interface Attribution<Owner> {
  readonly carriers: SourceIndex<Owner>
  /** Sources in full standing. */
  readonly trunks: SourceIndex<Owner>
  /** By signaling_fqdn; `sources` is null for a trunk that authenticates by digest. */
  readonly named: ReadonlyMap<string, Named<Owner>>
}

interface Named<Owner> {
  readonly owner: Owner
  readonly sources: SourceIndex<unknown> | null
}

type Attributed<Owner> =
  | { readonly kind: 'identified'; readonly owner: Owner; readonly cidr: string }
  /** Several owners share the source and precedence, and the request names none of their hosts. */
  | { readonly kind: 'ambiguous'; readonly owners: readonly Owner[] }
  /**
   * Only digest credentials can identify the owner. If the request names a trunk, they must be that trunk's (`named`).
   */
  | { readonly kind: 'challenge'; readonly named: Owner | null }

export function compileAttribution<Owner>(
  trunks: Iterable<KnownTrunk<Owner>>,
  carriers: Iterable<KnownCarrier<Owner>>,
): Attribution<Owner> {
  const full: SourceEntry<Owner>[] = []
  const named = new Map<string, Named<Owner>>()
  for (const { owner, signaling_fqdn, auth_mode, sources, source_index } of trunks) {
    const by_address = auth_mode === 'ip_allow_list'
    named.set(signaling_fqdn.toLowerCase(), { owner, sources: by_address ? source_index : null })
    if (!by_address) continue
    for (const { cidr, selector_precedence, standing } of sources)
      if (standing === 'full') full.push({ cidr, selector_precedence, owner })
  }
  const of_carriers = [...carriers].flatMap(({ owner, sources }) =>
    sources.map(cidr => ({ cidr, selector_precedence: 0, owner })),
  )
  return { carriers: compileSources(of_carriers), trunks: compileSources(full), named }
}

/**
 * Attributes a request to its owner (design sections 4 and 10). Credentials are always verified; an address never
 * outweighs them. A request that names a trunk reaches only that trunk. Otherwise the address decides: carriers first,
 * then the trunk with the longest prefix and the lowest selector_precedence. `hosts` are the hosts of the request-URI
 * and To, in this order, without port.
 */
export function attribute<Owner extends { readonly id: string }>(
  known: Attribution<Owner>,
  request: {
    readonly address: string
    readonly hosts: readonly (string | null | undefined)[]
    readonly has_credentials: boolean
  },
): Attributed<Owner> {
  const { address, hosts, has_credentials } = request
  const named = firstNamed(known, hosts)
  if (has_credentials) return { kind: 'challenge', named: named?.owner ?? null }
  if (named) {
    const entry = named.sources ? matchSources(named.sources, address)[0] : undefined
    return entry
      ? { kind: 'identified', owner: named.owner, cidr: entry.cidr }
      : { kind: 'challenge', named: named.owner }
  }
  const index = holdsAddress(known.carriers, address) ? known.carriers : known.trunks
  const entries = matchSources(index, address)
  const first = entries[0]
  if (!first) return { kind: 'challenge', named: null }
  const equals = entries.filter(entry => entry.selector_precedence === first.selector_precedence)
  const owners = new Set(equals.map(({ owner }) => owner.id))
  return owners.size === 1 ? found(first) : { kind: 'ambiguous', owners: equals.map(({ owner }) => owner) }
}

function firstNamed<Owner>({ named }: Attribution<Owner>, hosts: readonly (string | null | undefined)[]) {
  for (const host of hosts) {
    const trunk = host ? named.get(host.toLowerCase().replace(/\.$/, '')) : undefined
    if (trunk) return trunk
  }
  return undefined
}

const found = <Owner>({ owner, cidr }: SourceEntry<Owner>): Attributed<Owner> => ({ kind: 'identified', owner, cidr })
