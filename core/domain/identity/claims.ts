import { type Network, parseNetwork } from './address.ts'

/**
 * Decides which addresses identify which tenant (design section 10, "Sources"). The invariant: no tenant's write
 * redirects a packet that another tenant received. So sources in full standing of two tenants never overlap.
 */

/** A project and each of its subaccounts are separate tenants. */
export interface Tenant {
  readonly project_id: string
  readonly subaccount_id: string | null
}

/**
 * `full`: every request from the source belongs to its trunk. `name_only`: only requests that name the trunk's
 * signaling_fqdn do.
 */
export type ClaimStanding = 'full' | 'name_only' | 'pending_approval'

/**
 * A tenant's claim on addresses: an enabled source in full standing of an `ip_allow_list` trunk, or an address from
 * which the tenant authenticated by digest within PROVEN_DAYS.
 */
export interface Claim extends Tenant {
  readonly cidr: string
}

interface SourceWrite extends Tenant {
  readonly cidr: string
  /** The source before this write; null when it is new or belonged to another tenant. */
  readonly before: {
    readonly cidr: string
    readonly standing: ClaimStanding
    /** The source identified calls: it was enabled and its trunk used `ip_allow_list`. */
    readonly in_force: boolean
  } | null
  /** An operator approves this source. */
  readonly approved: boolean
}

/** Entries that overlap none of the written sources may be left out. */
export interface ClaimFacts {
  /** Sources of carriers. */
  readonly carriers: readonly string[]
  readonly taken: readonly Claim[]
  /** Number of the project's other sources. */
  readonly others_of_project: number
}

type Judgement =
  /** The source overlaps a carrier's source. */
  { readonly kind: 'carriers' } | { readonly kind: 'stands'; readonly standing: ClaimStanding }

/** What a project gets without an operator's approval: the number of sources, and the shortest prefix of each. */
const UNASKED = { sources: 100, v4_prefix: 24, v6_prefix: 48 } as const

/** How long a digest authentication counts as a claim on its address. */
export const PROVEN_DAYS = 90

/** The fields of a trunk that decide how its sources stand. */
interface KnownBy extends Tenant {
  readonly auth_mode: 'ip_allow_list' | 'digest'
}

interface StandingSource {
  readonly id: string
  readonly cidr: string
  readonly enabled: 0 | 1
  readonly standing: ClaimStanding
}

type Judged<Source> =
  /** `source` overlaps a carrier's source. */
  | { readonly kind: 'carriers'; readonly source: Source }
  | { readonly kind: 'stand'; readonly sources: readonly Source[] }

/**
 * Judges the sources that a write gives one trunk and returns each with its standing. `before` is the trunk with its
 * sources before the write; null for a new trunk.
 */
export function judgeSources<Source extends StandingSource>(
  sources: readonly Source[],
  trunk: KnownBy,
  before: { readonly trunk: KnownBy; readonly sources: readonly StandingSource[] } | null,
  facts: ClaimFacts,
  approved = false,
): Judged<Source> {
  // A trunk that changes tenant loses the rights of its earlier sources.
  const kept = before && sameTenant(before.trunk, trunk) ? before : null
  const read = readFacts(facts)
  const judged: Source[] = []
  for (const [at, source] of sources.entries()) {
    const known = kept?.sources.find(({ id }) => id === source.id)
    const in_force = known?.enabled === 1 && kept?.trunk.auth_mode === 'ip_allow_list'
    const { project_id, subaccount_id } = trunk
    const write = { cidr: source.cidr, project_id, subaccount_id, before: known ? { ...known, in_force } : null }
    const others_of_project = facts.others_of_project + at
    const judgement = judge({ ...write, approved }, { ...read, others_of_project })
    if (judgement.kind === 'carriers') return { kind: 'carriers', source }
    judged.push({ ...source, standing: judgement.standing })
  }
  return { kind: 'stand', sources: judged }
}

/** Judges one written source. Earlier claims win over it, and carriers win over all tenants. */
export const judgeSource = (write: SourceWrite, facts: ClaimFacts): Judgement => judge(write, readFacts(facts))

/** ClaimFacts with parsed CIDRs. One write parses them once for all its sources. */
interface ReadFacts extends Pick<ClaimFacts, 'others_of_project'> {
  readonly carriers: readonly Network[]
  readonly taken: readonly (Tenant & { readonly network: Network })[]
}

const readFacts = ({ carriers, taken, others_of_project }: ClaimFacts): ReadFacts => ({
  carriers: carriers.flatMap(cidr => parseNetwork(cidr) ?? []),
  taken: taken.flatMap(({ project_id, subaccount_id, cidr }) => {
    const network = parseNetwork(cidr)
    return network ? { project_id, subaccount_id, network } : []
  }),
  others_of_project,
})

function judge(write: SourceWrite, facts: ReadFacts): Judgement {
  const network = parseNetwork(write.cidr)
  if (!network) return { kind: 'stands', standing: 'pending_approval' }
  if (facts.carriers.some(carrier => overlaps(network, carrier))) return { kind: 'carriers' }
  const { before } = write
  const earlier = before ? parseNetwork(before.cidr) : null
  const narrowed = before !== null && earlier !== null && contains(earlier, network)
  const approved = write.approved || (narrowed && before.standing !== 'pending_approval')
  if (!approved && (isWide(network) || facts.others_of_project >= UNASKED.sources))
    return { kind: 'stands', standing: 'pending_approval' }
  if (narrowed && before.in_force && before.standing === 'full') return { kind: 'stands', standing: 'full' }
  const taken = facts.taken.some(other => !sameTenant(other, write) && overlaps(network, other.network))
  return { kind: 'stands', standing: taken ? 'name_only' : 'full' }
}

/** Reports whether a range is wider than a project may claim without an operator's approval. */
const isWide = ({ words, prefix_length }: Network): boolean =>
  prefix_length < (words.length === 1 ? UNASKED.v4_prefix : UNASKED.v6_prefix)

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.project_id === b.project_id && a.subaccount_id === b.subaccount_id

/** Reports whether two ranges share an address. CIDR ranges do so only when one contains the other. */
const overlaps = (a: Network, b: Network): boolean => contains(a, b) || contains(b, a)

/** Reports whether `inner` equals `outer` or is a subnet of it. */
function contains(outer: Network, inner: Network): boolean {
  if (inner.words.length !== outer.words.length || inner.prefix_length < outer.prefix_length) return false
  return outer.words.every((word, index) => {
    const bits = Math.min(32, Math.max(0, outer.prefix_length - index * 32))
    const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0
    return (word & mask) >>> 0 === ((inner.words[index] ?? 0) & mask) >>> 0
  })
}
