import {
  addressKey,
  attribute,
  type Claim,
  type ClaimFacts,
  type ClaimStanding,
  compileAttribution,
  compileSources,
  judgeSource,
  judgeSources,
  keysOfRange,
  type SourceIndex,
  sameTenant,
} from '../../../../../core/domain/identity/index.ts'
import t from '../../../../support/harness/index.ts'
import { SEED } from '../../../../support/seed.ts'

const ME = { project_id: 'prj_me', subaccount_id: null }
const OTHER = { project_id: 'prj_other', subaccount_id: null }
const NOTHING: ClaimFacts = { carriers: [], taken: [], others_of_project: 0 }

const standing = (cidr: string, facts: Partial<ClaimFacts>, write = {}) => {
  const judged = judgeSource({ ...ME, cidr, before: null, approved: false, ...write }, { ...NOTHING, ...facts })
  return judged.kind === 'stands' ? judged.standing : judged.kind
}

t.test("a source that overlaps a carrier's is refused, in either direction", async t => {
  const carriers = ['203.0.113.7/32', '198.51.100.0/24', '2001:db8:1::/64']
  for (const cidr of ['203.0.113.7/32', '203.0.113.0/24', '198.51.100.9/32', '2001:db8:1::5/128', '2001:db8::/32'])
    t.equal(standing(cidr, { carriers }), 'carriers', cidr)
  t.equal(standing('128.0.0.0/1', { carriers }), 'carriers', 'a wide one before anybody approves')
  t.equal(standing('203.0.113.7/32', { carriers }, { approved: true }), 'carriers', 'an operator cannot either')
  t.equal(standing('203.0.113.8/32', { carriers }), 'full')
})

t.test(
  'a range wider than /24 or /48, and every source after the hundredth, waits for an operator’s approval',
  async t => {
    for (const cidr of ['1.0.0.0/8', '2.0.0.0/7', '4.0.0.0/6', '128.0.0.0/1', '10.0.0.0/23', '2001:db8::/47']) {
      t.equal(standing(cidr, {}), 'pending_approval', cidr)
      t.equal(standing(cidr, {}, { approved: true }), 'full', cidr)
    }
    t.equal(standing('10.0.0.0/24', {}), 'full')
    t.equal(standing('2001:db8::/48', {}), 'full')
    t.equal(standing('10.0.0.1/32', { others_of_project: 99 }), 'full')
    t.equal(standing('10.0.0.1/32', { others_of_project: 100 }), 'pending_approval')
    const before = { cidr: '10.0.0.0/8', standing: 'full', in_force: false } as const
    t.equal(standing('10.0.0.0/9', {}, { before }), 'full', 'what was approved includes its parts')
    t.equal(standing('8.0.0.0/6', {}, { before }), 'pending_approval', 'but nothing wider')
  },
)

t.test(
  "a source that overlaps another tenant's earlier claim identifies only requests that name its trunk",
  async t => {
    const of = (tenant: object) => ({ taken: [{ ...OTHER, cidr: '192.0.2.64/26', ...tenant }] })
    for (const cidr of ['192.0.2.64/26', '192.0.2.65/32', '192.0.2.0/24']) t.equal(standing(cidr, of({})), 'name_only')
    t.equal(standing('192.0.2.0/26', of({})), 'full')
    t.equal(standing('192.0.2.64/26', of(ME)), 'full', 'precedence and host tell trunks of one tenant apart')
    t.equal(standing('192.0.2.64/26', of({ ...ME, subaccount_id: 'sub_1' })), 'name_only', 'a subaccount is a tenant')
    const taken = [{ ...OTHER, cidr: '192.0.2.70' }]
    t.equal(standing('192.0.2.64/26', { taken }), 'name_only', 'so does an address of digest users')
    const before = { cidr: '192.0.2.64/26', standing: 'full', in_force: true } as const
    t.equal(standing('192.0.2.64/27', { taken }, { before }), 'full', 'an earlier claim stands')
    t.equal(standing('192.0.2.64/27', { taken }, { before: { ...before, in_force: false } }), 'name_only')
  },
)

t.test('keys of addresses sort in address order', async t => {
  const range = keysOfRange('10.1.2.0/23')
  const within = (address: string): boolean => {
    const key = addressKey(address) ?? ''
    return range !== null && key >= range.first && key <= range.last
  }
  t.same(['10.1.1.255', '10.1.2.0', '10.1.3.255', '10.1.4.0', '::1'].map(within), [false, true, true, false, false])
  const six = keysOfRange('2001:db8::/47')
  t.same(six, { first: addressKey('2001:db8::'), last: addressKey('2001:db8:1:ffff:ffff:ffff:ffff:ffff') })
  t.same(keysOfRange('::/0')?.last, addressKey('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'))
})

/** Small numbers that can be drawn again by the same seed. */
function draws(seed: number) {
  let state = seed >>> 0
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  const oneOf = <T>(items: readonly T[]): T => items[below(items.length)] as T
  return { below, oneOf }
}

type Draws = ReturnType<typeof draws>

interface Source {
  readonly id: string
  readonly cidr: string
  readonly enabled: 0 | 1
  readonly standing: ClaimStanding
  readonly selector_precedence: number
}

interface Trunk {
  readonly id: string
  readonly tenant: number
  auth_mode: 'ip_allow_list' | 'digest'
  sources: readonly Source[]
}

interface Packet {
  readonly address: string
  readonly host: string | null
  /** The trunk whose password its sender knows. */
  readonly password_of: Trunk | null
  readonly has_credentials: boolean
}

const TENANTS = [
  { project_id: 'prj_1', subaccount_id: null },
  { project_id: 'prj_1', subaccount_id: 'sub_1' },
  { project_id: 'prj_2', subaccount_id: null },
] as const
const tenantOf = (trunk: Trunk) => TENANTS[trunk.tenant] ?? TENANTS[0]

/** Tenants with two trunks each, and carriers. Writes are judged as those of the API are. */
class World {
  readonly trunks: readonly Trunk[]
  readonly carriers: string[][] = [[], []]
  readonly proven: Claim[] = []
  readonly drawn: Draws
  readonly told: Record<string, number>
  readonly #indexes = new WeakMap<
    readonly Source[],
    { sources: readonly Source[]; source_index: SourceIndex<string> }
  >()
  #ids = 0
  #known: ReturnType<typeof compileAttribution<{ readonly id: string }>> | null = null

  constructor(drawn: Draws, told: Record<string, number>) {
    this.drawn = drawn
    this.told = told
    this.trunks = TENANTS.flatMap((_, tenant) =>
      [0, 1].map(at => ({
        id: `trk_${tenant}${at}`,
        tenant,
        auth_mode: drawn.below(3) === 0 ? ('digest' as const) : ('ip_allow_list' as const),
        sources: [],
      })),
    )
  }

  /** Whom a packet reaches: a tenant's number, a carrier, or nobody. A digest user answers a challenge. */
  reached({ address, host, password_of, has_credentials }: Packet): number | string {
    this.#known ??= this.#compiled()
    const found = attribute(this.#known, { address, hosts: [host], has_credentials })
    if (found.kind === 'ambiguous') return 'nobody'
    if (found.kind === 'identified')
      return this.trunks.find(({ id }) => id === found.owner.id)?.tenant ?? found.owner.id
    if (password_of?.auth_mode !== 'digest' || (found.named && found.named.id !== password_of.id)) return 'nobody'
    if (!this.proven.some(proof => proof.cidr === address && sameTenant(proof, tenantOf(password_of))))
      this.proven.push({ ...tenantOf(password_of), cidr: address })
    return password_of.tenant
  }

  #compiled() {
    const trunks = this.trunks.map(({ id, auth_mode, sources }) => ({
      ...{ owner: { id }, signaling_fqdn: `${id}.sip.test`, auth_mode },
      ...this.#usable(id, sources),
    }))
    return compileAttribution(
      trunks,
      this.carriers.map((sources, at) => ({ owner: { id: `carrier ${at}` }, sources })),
    )
  }

  #usable(owner: string, all: readonly Source[]) {
    const known = this.#indexes.get(all)
    if (known) return known
    const sources = all.filter(({ enabled, standing }) => enabled === 1 && standing !== 'pending_approval')
    const made = { sources, source_index: compileSources(sources.map(source => ({ ...source, owner }))) }
    this.#indexes.set(all, made)
    return made
  }

  /** Writes something; the number of the tenant that did, or null for a carrier. */
  write(): number | null {
    this.#known = null
    const { below, oneOf } = this.drawn
    if (below(8) === 0) {
      const carrier = oneOf(this.carriers)
      if (below(3) === 0) carrier.pop()
      else carrier.push(this.range())
      return null
    }
    const trunk = oneOf(this.trunks)
    const source = trunk.sources.length === 0 ? null : oneOf(trunk.sources)
    const kind = below(10)
    if (kind === 0) this.#save(trunk, { auth_mode: trunk.auth_mode === 'digest' ? 'ip_allow_list' : 'digest' })
    else if (kind === 1 && source) trunk.sources = trunk.sources.filter(({ id }) => id !== source.id)
    else if (kind === 2 && source) this.#judge(trunk, source, true)
    else if (kind <= 5 && source) {
      const cidr = below(2) === 0 ? source.cidr : this.range()
      this.#judge(trunk, { ...source, cidr, enabled: below(4) === 0 ? 0 : 1, selector_precedence: below(2) }, false)
    } else {
      const added = { id: `src_${this.#ids++}`, cidr: this.range(), selector_precedence: below(2), standing: 'full' }
      this.#judge(trunk, { ...added, enabled: below(6) === 0 ? 0 : 1 } as Source, false)
    }
    return trunk.tenant
  }

  #judge(trunk: Trunk, source: Source, approved: boolean): void {
    const before = { trunk: this.#seen(trunk), sources: trunk.sources }
    const judged = judgeSources([source], before.trunk, before, this.#facts(trunk), approved)
    const verdict = judged.kind === 'stand' ? (judged.sources[0]?.standing ?? '') : judged.kind
    this.told[verdict] = (this.told[verdict] ?? 0) + 1
    if (judged.kind === 'stand')
      trunk.sources = [...trunk.sources.filter(({ id }) => id !== source.id), ...judged.sources]
  }

  #save(trunk: Trunk, { auth_mode }: Pick<Trunk, 'auth_mode'>): void {
    const before = { trunk: this.#seen(trunk), sources: trunk.sources }
    const judged = judgeSources(trunk.sources, { ...before.trunk, auth_mode }, before, this.#facts(trunk))
    if (judged.kind === 'carriers') return
    trunk.auth_mode = auth_mode
    trunk.sources = judged.sources
  }

  #seen = (trunk: Trunk) => ({ ...tenantOf(trunk), auth_mode: trunk.auth_mode })

  #facts(trunk: Trunk): ClaimFacts {
    const claims: Claim[] = this.trunks
      .filter(({ auth_mode }) => auth_mode === 'ip_allow_list')
      .flatMap(other =>
        other.sources
          .filter(source => source.enabled === 1 && source.standing === 'full')
          .map(({ cidr }) => ({ ...tenantOf(other), cidr })),
      )
    const { project_id } = tenantOf(trunk)
    const others = this.trunks.filter(other => tenantOf(other).project_id === project_id)
    const others_of_project = others.reduce((sum, { sources }) => sum + sources.length, 0)
    return { carriers: this.carriers.flat(), taken: [...claims, ...this.proven], others_of_project }
  }

  address = (): string =>
    this.drawn.below(5) === 0 ? `2001:db8::${this.drawn.below(4)}` : `10.0.0.${this.drawn.below(16)}`

  range(): string {
    const { below } = this.drawn
    if (below(5) === 0) return `2001:db8::${below(4)}/${[40, 48, 126, 127, 128][below(5)]}`
    return `10.0.0.${below(16)}/${[1, 8, 23, 24, 28, 29, 30, 31, 32, 32, 32, 32][below(12)]}`
  }

  packet(): Packet {
    const { below, oneOf } = this.drawn
    const password_of = below(6) === 0 ? oneOf(this.trunks) : null
    const host = below(4) === 0 ? `${(password_of ?? oneOf(this.trunks)).id}.sip.test` : null
    return { address: this.address(), host, password_of, has_credentials: password_of !== null && below(2) === 0 }
  }
}

const CASES = 25_000
const WRITES_OF_A_WORLD = 16
const PACKETS = 5

t.test("no tenant's write takes another tenant's packets; only a carrier's write does", async t => {
  const drawn = draws(SEED)
  const told: Record<string, number> = {}
  const moved: unknown[] = []
  let held = 0
  let world = new World(drawn, told)
  for (let at = 0; at < CASES && moved.length === 0; at++) {
    if (at % WRITES_OF_A_WORLD === 0) world = new World(drawn, told)
    const packets = Array.from({ length: PACKETS }, () => world.packet())
    const before = packets.map(packet => world.reached(packet))
    const by = world.write()
    for (const [index, packet] of packets.entries()) {
      const [was, is] = [before[index], world.reached(packet)]
      if (was === 'nobody' || was === by) continue
      held++
      const taken_by_carrier = by === null && (typeof was === 'string' || typeof is === 'string')
      if (was !== is && !taken_by_carrier) moved.push({ at, by, was, is, packet })
    }
  }
  t.same(moved, [], `seed ${SEED}`)
  t.ok(held > CASES / 2, `${held} packets were watched`)
  for (const verdict of ['full', 'name_only', 'pending_approval', 'carriers'])
    t.ok((told[verdict] ?? 0) > CASES / 100, `${told[verdict]} sources were judged ${verdict}`)
})
