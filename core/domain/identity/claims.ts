import { type Network, parseNetwork } from './address.ts'

/**
 * Who may be known by which address (design section 10, "Sources"). The rule behind the rules: no write of one tenant
 * moves a packet that reached another. So no two tenants ever have sources in full standing that overlap.
 */

/** A project's own trunks and those of each of its subaccounts are tenants apart. */
export interface Tenant {
  readonly project_id: string
  readonly subaccount_id: string | null
}

/** `full`: whatever comes from the source is its trunk's. `name_only`: only what names the trunk's signaling_fqdn. */
export type Standing = 'full' | 'name_only' | 'pending_approval'

/**
 * What a tenant has of the addresses: an enabled source in full standing of a trunk that is known by address, or an
 * address from which it has authenticated by digest of late.
 */
export interface Claim extends Tenant {
  readonly cidr: string
}

interface SourceWrite extends Tenant {
  readonly cidr: string
  /** The source as it was; null: there was none, or it was another tenant's. */
  readonly before: {
    readonly cidr: string
    readonly standing: Standing
    /** Whether calls were told by it: it was enabled, and its trunk known by address. */
    readonly in_force: boolean
  } | null
  /** An operator approves of this very source. */
  readonly approved: boolean
}

/** What overlaps none of the sources that are written may be left out. */
export interface ClaimFacts {
  /** Sources of carriers. */
  readonly carriers: readonly string[]
  readonly taken: readonly Claim[]
  /** Sources that the project has beside this one. */
  readonly others_of_project: number
}

type Judgement =
  /** It overlaps a carrier's source. */
  { readonly kind: 'carriers' } | { readonly kind: 'stands'; readonly standing: Standing }

/** What a project has without asking: sources, and the width of each. */
const UNASKED = { sources: 100, v4_prefix: 24, v6_prefix: 48 } as const

/** How long an authentication by digest speaks for its address. */
export const PROVEN_DAYS = 90

/** A trunk as far as its sources count. */
interface KnownBy extends Tenant {
  readonly auth_mode: 'ip_allow_list' | 'digest'
}

interface StandingSource {
  readonly id: string
  readonly cidr: string
  readonly enabled: 0 | 1
  readonly standing: Standing
}

type Judged<Source> =
  /** One of the sources is a carrier's. */
  | { readonly kind: 'carriers'; readonly source: Source }
  | { readonly kind: 'stand'; readonly sources: readonly Source[] }

/**
 * Sources of one trunk that are written now, each with its standing. `before` is the trunk with its sources until now;
 * null for a new one.
 */
export function judgeSources<Source extends StandingSource>(
  sources: readonly Source[],
  trunk: KnownBy,
  before: { readonly trunk: KnownBy; readonly sources: readonly StandingSource[] } | null,
  facts: ClaimFacts,
  approved = false,
): Judged<Source> {
  // What was another tenant's gives no right to this one.
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

/** How a source stands that is written now. Earlier claims stand; carriers come first. */
export const judgeSource = (write: SourceWrite, facts: ClaimFacts): Judgement => judge(write, readFacts(facts))

/** Facts whose texts have been read, once for all sources that are judged by them. */
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

/** Whether a range is wider than a project may name without asking. */
const isWide = ({ words, prefix_length }: Network): boolean =>
  prefix_length < (words.length === 1 ? UNASKED.v4_prefix : UNASKED.v6_prefix)

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.project_id === b.project_id && a.subaccount_id === b.subaccount_id

/** Whether two ranges have an address in common: one of them lies in the other. */
const overlaps = (a: Network, b: Network): boolean => contains(a, b) || contains(b, a)

/** Whether `inner` is the same network as `outer` or a part of it. */
function contains(outer: Network, inner: Network): boolean {
  if (inner.words.length !== outer.words.length || inner.prefix_length < outer.prefix_length) return false
  return outer.words.every((word, index) => {
    const bits = Math.min(32, Math.max(0, outer.prefix_length - index * 32))
    const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0
    return (word & mask) >>> 0 === ((inner.words[index] ?? 0) & mask) >>> 0
  })
}
