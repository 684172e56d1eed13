import { seeded } from '../../../../../bench/random.ts'
import {
  delivery,
  egress,
  evenRandom,
  mayFailOver,
  orderByPriority,
  orderTargets,
  outcomeOf,
  type RoutableTarget,
  statusOf,
} from '../../../../../core/domain/routing/index.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const target = (id: string, changes: Partial<RoutableTarget> = {}): RoutableTarget => ({
  id,
  priority: 10,
  weight: 100,
  enabled: true,
  degraded: false,
  ...changes,
})

t.test(
  'weights share calls within 1 % over a thousand calls, from any start and with other trunks in between',
  async t => {
    const targets = [target('a', { weight: 60 }), target('b', { weight: 30 }), target('c', { weight: 10 })]
    for (const [start, stride] of [
      [0, 1],
      [0.37, 2],
      [0.91, 5],
    ] as const) {
      const first = new Map<string, number>()
      const second = new Map<string, number>()
      for (let call = 0; call < 1000; call++) {
        const [one, two] = orderTargets(targets, evenRandom(start, call * stride))
        first.set(one?.id ?? '', (first.get(one?.id ?? '') ?? 0) + 1)
        if (one?.id === 'a') second.set(two?.id ?? '', (second.get(two?.id ?? '') ?? 0) + 1)
      }
      for (const { id, weight } of targets) {
        const share = (first.get(id) ?? 0) / 1000
        t.ok(Math.abs(share - weight / 100) <= 0.01, `${id} got ${share} for weight ${weight}`)
      }
      const next = (second.get('b') ?? 0) / ((second.get('b') ?? 0) + (second.get('c') ?? 0))
      t.ok(Math.abs(next - 0.75) < 0.06, `after a comes b in ${next}, its share of what is left is 0.75`)
    }
  },
)

t.test('independent draws approach the shares of the weights', async t => {
  const random = seeded(7)
  const targets = [target('a', { weight: 60 }), target('b', { weight: 40 })]
  const firsts = Array.from({ length: 20_000 }, () => orderTargets(targets, random)[0]?.id)
  const share = firsts.filter(id => id === 'a').length / firsts.length
  t.ok(Math.abs(share - 0.6) < 0.015, `${share}`)
})

t.test('targets of weight 0 share evenly; among weighted targets they come first rarely', async t => {
  const random = seeded(3)
  const none = [target('a', { weight: 0 }), target('b', { weight: 0 })]
  const firsts = Array.from({ length: 400 }, () => orderTargets(none, random)[0]?.id)
  t.ok(firsts.filter(id => id === 'a').length > 140 && firsts.filter(id => id === 'b').length > 140)
  const mixed = [target('w', { weight: 20 }), target('z', { weight: 0 })]
  const zero = Array.from({ length: 2000 }, () => orderTargets(mixed, random)[0]?.id).filter(id => id === 'z').length
  t.ok(zero > 0 && zero < 300, `${zero} of 2000`)
})

t.test(
  'SRV records and URIs of a Sip noun: lower priority values first, equals in any order of their weights',
  async t => {
    const record = (name: string, priority: number, weight: number) => ({ name, priority, weight })
    const records = [record('c', 2, 0), record('a', 1, 3), record('b', 1, 1)]
    t.same(
      orderByPriority(records, () => 0).map(one => one.name),
      ['a', 'b', 'c'],
    )
    t.same(
      orderByPriority(records, () => 0.99).map(one => one.name),
      ['b', 'a', 'c'],
    )
    const random = seeded(5)
    const firsts = Array.from({ length: 20_000 }, () => orderByPriority(records, random)[0]?.name)
    const share = firsts.filter(name => name === 'a').length / firsts.length
    t.ok(Math.abs(share - 0.75) < 0.015, `${share}`)
  },
)

t.test('orders targets by priority, puts degraded ones last, and drops none', async t => {
  const targets = [
    target('late', { priority: 20 }),
    target('sick', { priority: 1, degraded: true }),
    target('early', { priority: 5 }),
  ]
  t.same(
    orderTargets(targets, () => 0).map(({ id }) => id),
    ['early', 'late', 'sick'],
  )
  fc.assert(
    fc.property(
      fc.array(fc.record({ priority: fc.nat(3), weight: fc.nat(5), degraded: fc.boolean() }), { maxLength: 12 }),
      fc.nat(),
      (list, seed) => {
        const ordered = orderTargets(list, seeded(seed))
        const sorted = ordered.every((each, index) => {
          const next = ordered[index + 1]
          return (
            !next ||
            Number(each.degraded) < Number(next.degraded) ||
            (each.degraded === next.degraded && each.priority <= next.priority)
          )
        })
        return sorted && ordered.length === list.length && list.every(each => ordered.includes(each))
      },
    ),
  )
})

t.test('egress uses the trunk’s own targets except the caller, else carriers by prefix, priority and cost', async t => {
  const facts = {
    targets: [target('peer'), target('off', { enabled: false }), target('far', { priority: 5 })],
    isOwnSource: ({ id }: RoutableTarget) => id === 'peer',
    carrier_routes: [
      { carrier_id: 'any', prefix: '', priority: 1, cost_minor: 1, targets: [target('any')] },
      { carrier_id: 'dear', prefix: '234', priority: 1, cost_minor: 9, targets: [target('dear')] },
      { carrier_id: 'cheap', prefix: '234', priority: 1, cost_minor: 2, targets: [target('cheap')] },
      { carrier_id: 'second', prefix: '234', priority: 2, cost_minor: 1, targets: [target('second')] },
      { carrier_id: 'special', prefix: '23480', priority: 9, cost_minor: 99, targets: [target('special')] },
      { carrier_id: 'cheap', prefix: '', priority: 1, cost_minor: 1, targets: [target('cheap-again')] },
      { carrier_id: 'other', prefix: '1', priority: 1, cost_minor: 1, targets: [target('other')] },
    ],
    digits: '2348031234567',
  }
  t.same(
    egress(facts, () => 0).map(({ target: { id }, carrier_id }) => [id, carrier_id]),
    [['far', null]],
  )
  t.same(
    egress({ ...facts, targets: [target('peer')] }, () => 0).map(({ carrier_id }) => carrier_id),
    ['special', 'cheap', 'dear', 'second', 'any'],
  )
  const sick = facts.carrier_routes.map(route =>
    route.carrier_id === 'special' ? { ...route, targets: [target('special', { degraded: true })] } : route,
  )
  t.same(
    egress({ ...facts, targets: [], carrier_routes: sick }, () => 0).map(({ carrier_id }) => carrier_id),
    ['cheap', 'dear', 'second', 'any', 'special'],
    'a degraded carrier is tried last, not never',
  )
  t.same(
    egress({ ...facts, targets: [], carrier_routes: [] }, () => 0),
    [],
  )
  t.same(
    delivery(facts.targets, () => 0).map(({ target: { id } }) => id),
    ['far', 'peer'],
  )
})

t.test('fails over only on timeout, transport failure, 408, 430 and 5xx, and never after early media', async t => {
  t.equal(mayFailOver({ kind: 'no_response' }, false), true)
  t.equal(mayFailOver({ kind: 'transport' }, false), true)
  for (let code = 300; code < 700; code++) {
    const expected = code === 408 || code === 430 || (code >= 500 && code < 600)
    if (mayFailOver({ kind: 'response', code }, false) !== expected) t.fail(`code ${code}`)
    if (mayFailOver({ kind: 'response', code }, true)) t.fail(`code ${code} after media`)
  }
  t.equal(mayFailOver({ kind: 'no_response' }, true), false)
})

t.test('every final response code maps to one call status', async t => {
  const table: readonly [number, string][] = [
    [200, 'completed'],
    [486, 'busy'],
    [600, 'busy'],
    [603, 'busy'],
    [408, 'no-answer'],
    [480, 'no-answer'],
    [404, 'failed'],
    [403, 'failed'],
    [503, 'failed'],
    [604, 'failed'],
  ]
  for (const [code, status] of table) t.equal(statusOf(code), status, `${code}`)
  t.equal(statusOf(487, 'ring_timeout'), 'no-answer')
  t.equal(statusOf(487, 'canceled'), 'canceled')
  t.equal(statusOf(487), 'failed')
  for (let code = 400; code < 700; code++) {
    const outcome = outcomeOf({ kind: 'response', code })
    const passed = code === 401 || code === 407 ? 403 : code
    if (outcome.code !== passed) t.fail(`${code} is passed on as ${outcome.code}`)
    if (outcome.status !== statusOf(code)) t.fail(`${code} has two statuses`)
  }
  t.match(outcomeOf({ kind: 'no_response' }), { status: 'failed', code: 408, reason: 'target_unreachable' })
  t.match(outcomeOf({ kind: 'transport' }), { status: 'failed', code: 503, reason: 'target_unreachable' })
  t.match(outcomeOf({ kind: 'response', code: 302 }), { status: 'failed', code: 480 })
  t.match(outcomeOf({ kind: 'response', code: 500 }), { reason: 'peer_failed' })
  t.match(outcomeOf({ kind: 'no_response' }, 'ring_timeout'), { status: 'no-answer', code: 487 })
})
