import { type AdmissionFacts, admit, CHECKS, type LevelFacts } from '../../../../../core/domain/admission/index.ts'
import { parseCalled } from '../../../../../core/domain/numbers/parse.ts'
import { REASONS, type Reason, sipRefusal } from '../../../../../core/domain/reasons/index.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'
import { facts, level, withLevel } from './facts.ts'

type Change = (base: AdmissionFacts) => AdmissionFacts

interface Case {
  readonly check: string
  readonly reason: Reason
  readonly sip: number
  /** Something of the offending value that the sentence must show. */
  readonly shows: string
  readonly change: Change
}

const disable =
  (kind: string, status: string): Change =>
  base => ({
    ...base,
    holders: base.holders.map(holder => (holder.kind === kind ? { ...holder, status, enabled: false } : holder)),
  })
const trunk =
  (changes: Partial<NonNullable<AdmissionFacts['trunk']>>): Change =>
  base => ({ ...base, trunk: base.trunk ? { ...base.trunk, ...changes } : null })
const ceiling =
  (name: LevelFacts['level'], changes: Partial<LevelFacts>): Change =>
  base =>
    withLevel(base, name, changes)

/** In the order of precedence: what stands earlier wins over everything later. */
const CASES: readonly Case[] = [
  { check: 'enabled', reason: 'project_disabled', sip: 403, shows: 'disabled', change: disable('project', 'disabled') },
  {
    check: 'enabled',
    reason: 'subaccount_suspended',
    sip: 403,
    shows: 'North',
    change: disable('subaccount', 'suspended'),
  },
  { check: 'enabled', reason: 'trunk_disabled', sip: 403, shows: 'Lagos office', change: disable('trunk', 'disabled') },
  { check: 'enabled', reason: 'subtrunk_disabled', sip: 403, shows: 'Branch', change: disable('subtrunk', 'disabled') },
  {
    check: 'direction',
    reason: 'direction_not_allowed',
    sip: 403,
    shows: 'inbound',
    change: trunk({ direction: 'inbound' }),
  },
  { check: 'transport_security', reason: 'tls_required', sip: 403, shows: 'udp', change: trunk({ require_tls: true }) },
  {
    check: 'media',
    reason: 'srtp_required',
    sip: 488,
    shows: 'plain RTP',
    change: trunk({ media_security: 'sdes_srtp_required' }),
  },
  { check: 'media', reason: 'no_common_codec', sip: 488, shows: 'G729', change: trunk({ codecs: ['OPUS'] }) },
  {
    check: 'called_number',
    reason: 'number_invalid',
    sip: 404,
    shows: '12ab',
    change: base => ({ ...base, called: parseCalled('12ab', 'NG') }),
  },
  {
    check: 'caller_number',
    reason: 'caller_not_owned',
    sip: 403,
    shows: '+15550000000',
    change: base => ({ ...base, caller: { given: '+15550000000', e164: '+15550000000', ownership: 'not_owned' } }),
  },
  {
    check: 'calling_hours',
    reason: 'outside_calling_hours',
    sip: 403,
    shows: 'sunday 03:12',
    change: base => ({ ...base, closed_by: { policy: 'Office', local_time: 'sunday 03:12 (Africa/Lagos)' } }),
  },
  {
    check: 'destination',
    reason: 'destination_high_risk',
    sip: 403,
    shows: '+2348031234567',
    change: base => ({ ...base, risk: { name: 'satellite', label: 'satellite telephones', open: false } }),
  },
  {
    check: 'destination',
    reason: 'destination_denied',
    sip: 403,
    shows: '+2348031234567',
    change: base => ({
      ...base,
      policies: [
        {
          id: 'pol_1',
          name: 'No mobiles',
          has_allow: false,
          rules: [{ op: 'deny', kind: 'prefix', value: '+23480', prefix: '23480', label: null }],
        },
      ],
    }),
  },
  {
    check: 'containment',
    reason: 'DESTINATION_CONTAINED',
    sip: 403,
    shows: 'CASE-7',
    change: base => ({ ...base, containments: [{ id: 'c1', prefix: '23480', case_ref: 'CASE-7' }] }),
  },
  {
    check: 'rate_and_route',
    reason: 'no_rate',
    sip: 404,
    shows: 'Standard',
    change: base => ({ ...base, rate: null }),
  },
  {
    check: 'rate_and_route',
    reason: 'no_route',
    sip: 404,
    shows: '+2348031234567',
    change: base => ({ ...base, routes: 0 }),
  },
  ...(['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(name => ({
    check: 'rate_ceiling',
    reason: 'rate_above_ceiling' as const,
    sip: 403,
    shows: 'NGN 0.59',
    change: ceiling(name, { max_destination_rate_minor: 59 }),
  })),
  ...(['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(name => ({
    check: 'concurrency',
    reason: 'concurrency_exceeded' as const,
    sip: 503,
    shows: `${name} "the ${name}"`,
    change: ceiling(name, { concurrency: { limit: 3, used: 3 } }),
  })),
  ...(['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(name => ({
    check: 'cps',
    reason: 'cps_exceeded' as const,
    sip: 503,
    shows: `${name} "the ${name}"`,
    change: ceiling(name, { cps: { limit: 2, used: 2 } }),
  })),
  ...(['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(name => ({
    check: 'spend',
    reason: 'daily_spend_exceeded' as const,
    sip: 403,
    shows: 'NGN 1.01',
    change: ceiling(name, { daily_spend: { limit: 100, used: 91 } }),
  })),
  ...(['subtrunk', 'project'] as const).map(name => ({
    check: 'spend',
    reason: 'velocity_exceeded' as const,
    sip: 403,
    shows: 'NGN 1.01',
    change: ceiling(name, { velocity: { limit: 100, used: 91 } }),
  })),
  {
    check: 'spend',
    reason: 'balance_exhausted',
    sip: 403,
    shows: 'NGN 0.09 left',
    change: base => ({ ...base, balance: { name: 'Shop', available_minor: 9 } }),
  },
  {
    check: 'spend',
    reason: 'max_duration',
    sip: 403,
    shows: 'the trunk',
    change: ceiling('trunk', { max_call_duration_seconds: 0 }),
  },
]

t.test('the checks are the thirteen of the design and the calling hours, in their order', async t => {
  t.same(
    CHECKS.map(check => check.name),
    [
      'enabled',
      'direction',
      'transport_security',
      'media',
      'called_number',
      'caller_number',
      'calling_hours',
      'destination',
      'containment',
      'rate_and_route',
      'rate_ceiling',
      'concurrency',
      'cps',
      'spend',
    ],
  )
})

t.test('a call that passes every check is admitted with a finding for each', async t => {
  const verdict = admit(facts())
  t.equal(verdict.admitted, true)
  t.same(
    verdict.trace.map(finding => finding.check),
    CHECKS.map(check => check.name),
  )
  for (const finding of verdict.trace) t.ok(finding.sentence.length > 0, `${finding.check} says what it found`)
  if (verdict.admitted) {
    t.equal(verdict.reserve_minor, 10, 'the first increment of ten seconds at 60 a minute')
    t.equal(verdict.max_duration_seconds, null)
  }
})

t.test(
  'each check alone refuses with its reason, its codes, a sentence with the value, and a trace that ends there',
  async t => {
    for (const { check, reason, sip, shows, change } of CASES) {
      const verdict = admit(change(facts()))
      t.equal(verdict.admitted, false, `${reason} refuses`)
      if (verdict.admitted) continue
      t.equal(verdict.reason, reason)
      t.match(verdict.sentence, shows, `${reason}: the sentence shows ${shows}`)
      const last = verdict.trace.at(-1)
      t.equal(last?.check, check)
      t.equal(last?.result, 'refused')
      t.ok(last && 'limit' in last && 'used' in last, 'limit and value are kept')
      t.equal(verdict.trace.filter(finding => finding.result === 'refused').length, 1)
      const refusal = sipRefusal(verdict.reason, verdict.facts, verdict.sentence)
      t.equal(refusal.code, sip)
      t.equal(refusal.headers.Reason, `X-Strowger;cause=${sip};text="${reason}"`)
      t.match(refusal.headers.Warning, /^399 strowger "[^"]+"$/)
      t.equal(refusal.headers['Retry-After'], reason === 'cps_exceeded' ? '1' : undefined)
      t.ok(CHECKS.find(each => each.name === check)?.reasons.includes(reason), 'the check names its reason')
    }
  },
)

t.test('of any two refusing checks, the earlier one gives the reason', async t => {
  let pairs = 0
  for (const [index, earlier] of CASES.entries())
    for (const later of CASES.slice(index + 1)) {
      // Two values of one fact cannot be set together.
      const both = later.change(earlier.change(facts()))
      const alone = admit(later.change(facts()))
      const first = admit(earlier.change(later.change(facts())))
      if (first.admitted || alone.admitted) throw new Error('a case admits')
      const verdict = admit(both)
      if (verdict.admitted) throw new Error('a pair admits')
      const overwritten = JSON.stringify(both) === JSON.stringify(later.change(facts()))
      if (overwritten) continue
      pairs++
      if (first.reason !== earlier.reason || verdict.reason !== earlier.reason)
        t.fail(`${earlier.reason} before ${later.reason}: got ${verdict.reason}`)
    }
  t.ok(pairs > 500, `${pairs} pairs`)
})

t.test('null means no ceiling and 0 admits nothing, for every ceiling of every level', async t => {
  const zeros: readonly [Partial<LevelFacts>, Reason][] = [
    [{ concurrency: { limit: 0, used: 0 } }, 'concurrency_exceeded'],
    [{ cps: { limit: 0, used: 0 } }, 'cps_exceeded'],
    [{ daily_spend: { limit: 0, used: 0 } }, 'daily_spend_exceeded'],
    [{ velocity: { limit: 0, used: 0 } }, 'velocity_exceeded'],
    [{ max_destination_rate_minor: 0 }, 'rate_above_ceiling'],
    [{ max_call_duration_seconds: 0 }, 'max_duration'],
  ]
  const free: AdmissionFacts = { ...facts(), billing: 'free', rate: null, price_book: null }
  for (const name of ['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const)
    for (const [zero, reason] of zeros) {
      const verdict = admit(withLevel(facts(), name, zero))
      t.equal(verdict.admitted ? null : verdict.reason, reason, `${name} ${reason}`)
      // Nothing is admitted by 0, not even what costs nothing.
      const unbilled = admit(withLevel(free, name, zero))
      t.equal(unbilled.admitted ? null : unbilled.reason, reason, `${name} ${reason}, free`)
    }
  const used = { limit: null, used: 1_000_000_000 }
  const open = facts({
    levels: [level({ level: 'project', concurrency: used, cps: used, daily_spend: used, velocity: used })],
  })
  t.equal(admit(open).admitted, true)
})

t.test('calls to our numbers take slots, and skip the destination and price checks', async t => {
  const inbound = facts({
    direction: 'inbound',
    rate: null,
    routes: 0,
    caller: { given: '', e164: null, ownership: 'invalid' },
  })
  t.equal(admit(inbound).admitted, true)
  const full = admit(withLevel(inbound, 'trunk', { concurrency: { limit: 1, used: 1 } }))
  t.equal(full.admitted ? null : full.reason, 'concurrency_exceeded')
  const outward = admit({
    ...inbound,
    trunk: { ...(inbound.trunk as NonNullable<AdmissionFacts['trunk']>), direction: 'outbound' },
  })
  t.equal(outward.admitted ? null : outward.reason, 'direction_not_allowed')
  const onNet = admit(facts({ direction: 'on_net', rate: null, routes: 0, transport: 'udp' }))
  t.equal(onNet.admitted, true)
  const stranger = admit(facts({ direction: 'on_net', caller: { given: '1', e164: null, ownership: 'invalid' } }))
  t.equal(stranger.admitted, true, 'a PBX passes on callers from anywhere (docs/calls.md)')
})

t.test('a subtrunk’s call needs the consent of its own policy and its trunk’s', async t => {
  const allow = (prefix: string) => ({
    id: prefix,
    name: prefix,
    has_allow: true,
    rules: [{ op: 'allow' as const, kind: 'prefix' as const, value: prefix, prefix, label: null }],
  })
  t.equal(admit(facts({ policies: [allow('234'), allow('23480')] })).admitted, true)
  const narrowed = admit(facts({ policies: [allow('234'), allow('23490')] }))
  t.equal(narrowed.admitted ? null : narrowed.reason, 'destination_denied')
  const widened = admit(facts({ policies: [allow('1'), allow('234')] }))
  t.equal(widened.admitted ? null : widened.reason, 'destination_denied', 'a share cannot widen what its trunk may')
})

t.test('the longest call is the minimum of all duration limits and of the affordable time', async t => {
  const base = withLevel(facts(), 'policy', { max_call_duration_seconds: 300 })
  const capped = admit(withLevel(base, 'trunk', { max_call_duration_seconds: 120 }))
  t.match(capped, { admitted: true, max_duration_seconds: 120, max_duration_reason: 'max_duration' })
  // 100 minor units at 60 a minute are 100 s, in increments of 10.
  const paid = admit(withLevel(base, 'project', { daily_spend: { limit: 105, used: 0 } }))
  t.match(paid, { admitted: true, max_duration_seconds: 100, max_duration_reason: 'spend_exhausted' })
  t.match(admit({ ...base, balance: { name: 'b', available_minor: 45 } }), { max_duration_seconds: 40 })
  t.match(admit({ ...base, billing: 'free', balance: { name: 'b', available_minor: 0 } }), {
    max_duration_seconds: 300,
  })
})

const amount = fc.nat({ max: 200 })
const limit = fc.option(amount, { nil: null })
const anyLevel = fc.record({
  level: fc.constantFrom<LevelFacts['level']>('subtrunk', 'trunk', 'policy', 'subaccount', 'project'),
  concurrency: fc.record({ limit, used: amount }),
  cps: fc.record({ limit, used: amount }),
  daily_spend: fc.record({ limit, used: amount }),
  velocity: fc.record({ limit, used: amount }),
  max_destination_rate_minor: limit,
  max_call_duration_seconds: limit,
})
type AnyLevel = typeof anyLevel extends fc.Arbitrary<infer T> ? T : never
const CEILINGS = [
  'concurrency',
  'cps',
  'daily_spend',
  'velocity',
  'max_destination_rate_minor',
  'max_call_duration_seconds',
] as const

t.test('lowering any ceiling never admits a call that was refused before', async () => {
  const lowered = (each: AnyLevel, name: (typeof CEILINGS)[number], by: number): AnyLevel => {
    const less = (value: number | null) => (value === null ? 100 : Math.max(0, value - by))
    return name === 'max_destination_rate_minor' || name === 'max_call_duration_seconds'
      ? { ...each, [name]: less(each[name]) }
      : { ...each, [name]: { ...each[name], limit: less(each[name].limit) } }
  }
  fc.assert(
    fc.property(
      fc.array(anyLevel, { minLength: 1, maxLength: 5 }),
      fc.nat(),
      fc.constantFrom(...CEILINGS),
      amount,
      (levels, pick, name, by) => {
        const at = pick % levels.length
        const before = admit(facts({ levels: levels.map(each => level(each)) }))
        const after = admit(
          facts({ levels: levels.map((each, i) => level(i === at ? lowered(each, name, by) : each)) }),
        )
        if (!after.admitted) return true
        if (!before.admitted) return false
        const more = before.max_duration_seconds ?? Number.POSITIVE_INFINITY
        return (after.max_duration_seconds ?? Number.POSITIVE_INFINITY) <= more
      },
    ),
    { numRuns: 3000 },
  )
})

t.test('an admitted call exceeds no ceiling', async () => {
  fc.assert(
    fc.property(fc.array(anyLevel, { minLength: 1, maxLength: 5 }), levels => {
      const verdict = admit(facts({ levels: levels.map(each => level(each)) }))
      if (!verdict.admitted) return true
      return levels.every(
        ({ concurrency, cps, daily_spend, velocity }) =>
          (concurrency.limit === null || concurrency.used + 1 <= concurrency.limit) &&
          (cps.limit === null || cps.used + 1 <= cps.limit) &&
          (daily_spend.limit === null || daily_spend.used + verdict.reserve_minor <= daily_spend.limit) &&
          (velocity.limit === null || velocity.used + verdict.reserve_minor <= velocity.limit),
      )
    }),
    { numRuns: 3000 },
  )
})

t.test('every reason that a check can refuse with has a SIP code', async t => {
  for (const check of CHECKS) for (const reason of check.reasons) t.type(REASONS[reason].sip, 'number', reason)
})

t.test(
  'a leg to a SIP URI or a client needs no number, route and owned caller; all other checks are asked',
  async t => {
    for (const over of ['sip', 'client'] as const) {
      const bare = facts({
        over,
        called: { given: 'agent', country: 'NG', number: null },
        caller: { given: 'Bob', e164: null, ownership: 'invalid' },
        rate: null,
        routes: 0,
      })
      t.match(admit(bare), { admitted: true, reserve_minor: 0 })
      t.match(admit({ ...bare, over: 'network' }), { admitted: false, reason: 'number_invalid' })
      const levels = bare.levels.map(each => ({ ...each, cps: { limit: 1, used: 1 } }))
      t.match(admit({ ...bare, levels }), { reason: 'cps_exceeded' })
      t.match(admit(disable('project', 'disabled')(bare)), { reason: 'project_disabled' })
      const number = facts({ over, containments: [{ id: 'con_1', prefix: '23480', case_ref: 'C-1' }] })
      t.match(admit(number), { reason: 'DESTINATION_CONTAINED' })
    }
  },
)
