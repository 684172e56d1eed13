import { type Network, parseNetwork } from './address.ts'
import { matchSources, type SourceEntry, type SourceIndex } from './sources.ts'

/** The least that an owner of sources must tell: its host, to tell trunks of one source apart. */
export interface SourceOwner {
  readonly id: string
  /** `<trunk id without trk_>.sip.<domain>`; null for owners that have none, such as carriers. */
  readonly signaling_fqdn: string | null
}

export type Identified<Owner> =
  | { readonly kind: 'identified'; readonly owner: Owner; readonly cidr: string }
  /** Several owners have the same source and precedence, and the request names none of their hosts. */
  | { readonly kind: 'ambiguous'; readonly owners: readonly Owner[] }
  /** Nobody's source: digest or a stranger. */
  | { readonly kind: 'unknown' }

/**
 * Whose call it is by its source (design section 4): of the longest prefix, the owner whose host the request-URI or,
 * failing that, To names; else the one of the lowest selector_precedence. `hosts` are those two, in this order, without
 * port.
 */
export function identifyBySource<Owner extends SourceOwner>(
  index: SourceIndex<Owner>,
  address: string,
  hosts: readonly (string | null | undefined)[],
): Identified<Owner> {
  const entries = matchSources(index, address)
  const first = entries[0]
  if (!first) return { kind: 'unknown' }
  for (const host of hosts) {
    const named = host ? entries.find(({ owner }) => sameHost(owner.signaling_fqdn, host)) : undefined
    if (named) return found(named)
  }
  const equals = entries.filter(entry => entry.selector_precedence === first.selector_precedence)
  const owners = new Set(equals.map(({ owner }) => owner.id))
  return owners.size === 1 ? found(first) : { kind: 'ambiguous', owners: equals.map(({ owner }) => owner) }
}

const found = <Owner>({ owner, cidr }: SourceEntry<Owner>): Identified<Owner> => ({ kind: 'identified', owner, cidr })

const sameHost = (fqdn: string | null, host: string): boolean =>
  fqdn !== null && fqdn.toLowerCase() === host.toLowerCase().replace(/\.$/, '')

/** A source that a trunk has or would have. */
export interface ClaimedSource {
  readonly cidr: string
  readonly project_id: string
}

/**
 * The source of another project that a new source would take calls from: its network is the same or a part of theirs,
 * so that the longest prefix or a lower precedence would win (decision 0502). Within a project the same source is fine:
 * precedence and host tell its trunks apart.
 */
export function conflictOf<Claim extends ClaimedSource>(source: ClaimedSource, others: Iterable<Claim>): Claim | null {
  const network = parseNetwork(source.cidr)
  if (!network) return null
  for (const other of others) {
    if (other.project_id === source.project_id) continue
    const theirs = parseNetwork(other.cidr)
    if (theirs && lies(network, theirs)) return other
  }
  return null
}

/** Whether `inner` is the same network as `outer` or a part of it. */
function lies(inner: Network, outer: Network): boolean {
  if (inner.words.length !== outer.words.length || inner.prefix_length < outer.prefix_length) return false
  return outer.words.every((word, index) => {
    const bits = Math.min(32, Math.max(0, outer.prefix_length - index * 32))
    const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0
    return (word & mask) >>> 0 === ((inner.words[index] ?? 0) & mask) >>> 0
  })
}
