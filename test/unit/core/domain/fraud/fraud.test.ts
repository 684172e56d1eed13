import type { DestinationGroup, ServiceTraffic } from '../../../../../core/domain/alerts/index.ts'
import { type FraudRules, prefixToClose, propose, protectedBy } from '../../../../../core/domain/fraud/index.ts'
import t from '../../../../support/harness/index.ts'

const NOW = '2026-03-11T12:00:00.000Z'
const LONG_AGO = '2026-01-01T00:00:00.000Z'
const RULES: FraudRules = {
  high_cost_minor: 10_000,
  velocity_minor: 2_000_000,
  velocity_min_calls: 3,
  ceiling_minor: 20_000_000,
  compromise_minor: 200_000,
}

const group = (over: Partial<DestinationGroup> = {}): DestinationGroup => ({
  ...{ rate_prefix: '88213', label: 'Satellite', common_digits: '88213555', rate_minor_per_minute: 60_000 },
  ...{ calls: 1, settled: 1, short: 0, live: 0, spend_minor: 60_000, held_minor: 0 },
  ...{ first_seen_at: LONG_AGO, earlier_nights: 3 },
  ...over,
})
const trunk = (destinations: readonly DestinationGroup[], over: Partial<ServiceTraffic> = {}): ServiceTraffic => ({
  ...{ id: 'trk_1', trunk_id: 'trk_1', name: 'Branch', currency: 'NGN', window_seconds: 300, held_minor: 0 },
  spend_minor: destinations.reduce((sum, one) => sum + one.spend_minor, 0),
  calls: destinations.reduce((sum, one) => sum + one.calls, 0),
  ...{ ceiling_spend_minor: 0, destinations, new_sources: [], night: false },
  ...over,
})
const CHEAP = { rate_minor_per_minute: 200, rate_prefix: '234', common_digits: '23480' }
const stranger = (spend_minor: number) => [
  { address: '198.51.100.9', first_seen_at: NOW, calls: 5, spend_minor, blocked_at: null },
]

t.test('closes destinations in order of severity, each with its reason', async t => {
  const cases: readonly (readonly [what: string, traffic: ServiceTraffic, reason: string | null])[] = [
    ['one dear call to where the trunk always called', trunk([group()]), null],
    [
      'a new source that spends much on a dear destination',
      trunk([group({ calls: 9, spend_minor: 540_000 })], { new_sources: stranger(540_000) }),
      'account_compromise',
    ],
    ['a new source that spends little', trunk([group()], { new_sources: stranger(199_999) }), null],
    [
      'a new source that spends on cheap destinations',
      trunk([group({ ...CHEAP, spend_minor: 500_000 })], { new_sources: stranger(500_000) }),
      null,
    ],
    ['fast spend on a dear destination', trunk([group({ calls: 3, spend_minor: 2_000_000 })]), 'spend_velocity'],
    ['as much in too few calls', trunk([group({ calls: 2, spend_minor: 2_000_000 })]), null],
    [
      'fast spend on a cheap destination that was always called',
      trunk([group({ ...CHEAP, calls: 900, spend_minor: 2_000_000 })]),
      null,
    ],
    [
      'fast spend on a cheap destination that is new',
      trunk([group({ ...CHEAP, calls: 900, spend_minor: 2_000_000, first_seen_at: null })]),
      'spend_velocity',
    ],
    ["the platform's ceiling", trunk([group({ calls: 1 })], { ceiling_spend_minor: 20_000_000 }), 'spend_velocity'],
    [
      'five calls to a dear destination never called before',
      trunk([group({ calls: 5, first_seen_at: null })]),
      'destination_risk',
    ],
    ['four of them', trunk([group({ calls: 4, first_seen_at: null })]), null],
    ['five, a day after the first', trunk([group({ calls: 5, first_seen_at: '2026-03-10T12:00:00.000Z' })]), null],
    ['a burst of short calls', trunk([group({ calls: 20, settled: 20, short: 16 })]), 'destination_risk'],
    ['a burst with fewer short ones', trunk([group({ calls: 20, settled: 20, short: 15 })]), null],
    [
      'calls at night where none were',
      trunk([group({ calls: 5, earlier_nights: 0 })], { night: true }),
      'destination_risk',
    ],
    ['calls at night where there are some every night', trunk([group({ calls: 5 })], { night: true }), null],
    ['the same calls by day', trunk([group({ calls: 5, earlier_nights: 0 })]), null],
  ]
  for (const [what, traffic, reason] of cases)
    t.equal(propose(traffic, RULES, NOW)[0]?.reason_category ?? null, reason, what)
  const quiet = { ...RULES, velocity_minor: null, ceiling_minor: null }
  t.same(
    propose(trunk([group({ calls: 3, spend_minor: 9_000_000 })]), quiet, NOW),
    [],
    'a rule that is off closes nothing',
  )
})

t.test('closes only the destinations with the most spend', async t => {
  const dear = group({ calls: 30, spend_minor: 1_900_000 })
  const other = group({
    rate_prefix: '44',
    common_digits: '4420',
    calls: 3,
    spend_minor: 100_000,
    rate_minor_per_minute: 20_000,
  })
  t.match(propose(trunk([dear, other]), RULES, NOW), [{ prefix: '88213555', reason_category: 'spend_velocity' }])
})

t.test('closes the rate’s prefix, or a longer one that all calls share', async t => {
  const closed = (common_digits: string) => prefixToClose(group({ common_digits }))
  t.equal(closed('88213'), '88213')
  t.equal(closed('882135551234'), '88213555', 'at most three digits closer: the next call goes to the number beside')
  t.equal(closed('8821'), '88213', 'a rate is never widened')
})

t.test('never closes emergency numbers or prefixes that a policy allows explicitly', async t => {
  const facts = { numbers: ['234112', '112'], allowed_prefixes: ['4420', '88216555'] }
  const cases: readonly (readonly [prefix: string, why: 'emergency' | 'allowed' | null])[] = [
    ['234', 'emergency'],
    ['234112', 'emergency'],
    ['2341', 'emergency'],
    ['23480', null],
    ['11', 'emergency'],
    ['4420', 'allowed'],
    ['442071', 'allowed'],
    ['44', 'allowed'],
    ['88216', 'allowed'],
    ['88213', null],
  ]
  for (const [prefix, why] of cases) t.equal(protectedBy(prefix, facts), why, `+${prefix}`)
})
