import {
  beginOf,
  type EndedCall,
  FIGURE_NAMES,
  type Figures,
  failureOfCall,
  figuresOfCall,
  HOUR_MS,
  type MetricsWindow,
  MINUTE_MS,
  mediaMetricsOf,
  metricsOf,
  NO_FIGURES,
  pddQuantile,
  stepOf,
  windowBegin,
} from '../../../../../core/domain/metrics/index.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

const NOW = Date.parse('2026-11-21T14:34:56.789Z')

interface Leg {
  readonly packets_received: number
  readonly packets_lost: number
  readonly jitter_ms: number
  readonly mos: number | null
}
interface Call extends EndedCall {
  readonly ended_ms: number
}

const leg: fc.Arbitrary<Leg> = fc.record({
  packets_received: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5000 })),
  packets_lost: fc.integer({ min: 0, max: 300 }),
  jitter_ms: fc.integer({ min: 0, max: 400_000 }).map(us => us / 1000),
  mos: fc.option(fc.integer({ min: 1000, max: 4500 }).map(thousandths => thousandths / 1000)),
})
const media = fc.option(
  fc.record({ a: fc.option(leg), b: fc.option(leg), mode: fc.constantFrom('relay', 'transcode', null) }),
)
const call: fc.Arbitrary<Call> = fc
  .record({
    ended_ms: fc.integer({ min: NOW - 31 * 24 * HOUR_MS, max: NOW }),
    answered: fc.boolean(),
    duration_seconds: fc.integer({ min: 0, max: 7200 }),
    pdd_ms: fc.option(fc.integer({ min: 0, max: 30_000 })),
    status: fc.constantFrom('busy', 'no-answer', 'failed', 'canceled'),
    reason: fc.constantFrom(null, null, 'no_route', 'node_lost'),
    sip_code: fc.constantFrom(null, 486, 480, 503),
    media,
  })
  .map(({ answered, media, ...made }) => ({
    ...made,
    status: answered ? 'completed' : made.status,
    answered_at: answered ? 'then' : null,
    media: answered && media ? JSON.stringify(media) : null,
  }))

const WINDOWS: readonly MetricsWindow[] = ['1h', '24h', '7d', '30d']

const add = (sum: Figures, more: Figures): Figures =>
  Object.fromEntries(FIGURE_NAMES.map(name => [name, sum[name] + more[name]])) as unknown as Figures

/** The way of the platform: every call is added to its step when it ends; a window is the sum of its steps. */
function bySteps(calls: readonly Call[], window: MetricsWindow): Figures {
  const step_ms = stepOf(window)
  const steps = new Map<number, Figures>()
  for (const ended of calls) {
    const begin = beginOf(ended.ended_ms, step_ms)
    steps.set(begin, add(steps.get(begin) ?? NO_FIGURES, figuresOfCall(ended)))
  }
  const from = windowBegin(NOW, window)
  return [...steps].filter(([begin]) => begin >= from).reduce((sum, [, figures]) => add(sum, figures), NO_FIGURES)
}

/** The straightforward way: look at every call of the window for every figure. */
function recomputed(calls: readonly Call[], window: MetricsWindow) {
  const within = calls.filter(({ ended_ms }) => ended_ms >= windowBegin(NOW, window))
  const answered = within.filter(({ answered_at }) => answered_at !== null)
  const delays = within.flatMap(({ pdd_ms }) => pdd_ms ?? [])
  const measured = answered.flatMap(({ media, duration_seconds }) => {
    const { a = null, b = null, mode = null } = media === null ? {} : JSON.parse(media)
    const legs: Leg[] = [a, b].filter(found => found !== null)
    return legs.length === 0 ? [] : [{ legs, mode, duration_seconds }]
  })
  const legs = measured.flatMap(found => found.legs)
  const lost = legs.reduce((total, { packets_lost }) => total + packets_lost, 0)
  const received = legs.reduce((total, { packets_received }) => total + packets_received, 0)
  const hears = ({ packets_received }: Leg) => packets_received > 0
  const scores = legs.filter(hears).flatMap(({ mos }) => mos ?? [])
  const jitters = legs.filter(hears).map(({ jitter_ms }) => jitter_ms)
  return {
    attempts: within.length,
    answered: answered.length,
    failed: within.length - answered.length,
    acd: mean(answered.map(({ duration_seconds }) => duration_seconds)),
    pdd: mean(delays),
    no_media_calls: measured.filter(found => !found.legs.some(hears)).length,
    one_way_calls: measured.filter(
      found => found.duration_seconds >= 4 && found.legs.some(hears) && !found.legs.every(hears),
    ).length,
    transcoded_calls: measured.filter(({ mode }) => mode === 'transcode').length,
    loss: received + lost === 0 ? null : (lost / (received + lost)) * 100,
    mos: mean(scores),
    jitter: mean(jitters),
  }
}

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((total, value) => total + value, 0) / values.length

const near = (told: number | null, truth: number | null, by: number): boolean =>
  told === null || truth === null ? told === truth : Math.abs(told - truth) <= by

t.test('the metrics of random calls equal those computed from every call of the window', async t => {
  fc.assert(
    fc.property(fc.array(call, { maxLength: 120 }), fc.constantFrom(...WINDOWS), (calls, window) => {
      const figures = bySteps(calls, window)
      const told = { ...metricsOf(figures, bySteps(calls, '7d'), []), ...mediaMetricsOf(figures) }
      const truth = recomputed(calls, window)
      const { answered, attempts } = recomputed(calls, '7d')
      for (const name of [
        'attempts',
        'answered',
        'failed',
        'no_media_calls',
        'one_way_calls',
        'transcoded_calls',
      ] as const)
        if (told[name] !== truth[name]) throw new Error(`${name}: ${told[name]}, not ${truth[name]}`)
      const pairs: [string, number | null, number | null, number][] = [
        ['acd', told.acd_seconds, truth.acd, 0.5],
        ['pdd', told.pdd_ms, truth.pdd, 0.5],
        ['mos', told.mos, truth.mos, 0.005001],
        ['jitter', told.jitter_ms, truth.jitter, 0.005001],
        ['loss', told.packet_loss_pct === null ? null : Number(told.packet_loss_pct), truth.loss, 0.005001],
        [
          'asr',
          told.asr_7d_pct === null ? null : Number(told.asr_7d_pct),
          attempts === 0 ? null : (answered / attempts) * 100,
          0.05001,
        ],
      ]
      for (const [name, value, wanted, by] of pairs)
        if (!near(value, wanted, by)) throw new Error(`${name}: ${value}, not ${wanted}`)
      if ((told.acd_seconds === null) !== (told.acd_reason !== null)) throw new Error('a figure or a reason, not both')
      if ((told.pdd_ms === null) !== (told.pdd_reason !== null)) throw new Error('a figure or a reason, not both')
    }),
    { numRuns: 400 },
  )
  t.pass('400 sets of calls')
})

t.test('top failures are grouped by reason and code, ordered by count, with shares of all failed calls', async t => {
  fc.assert(
    fc.property(fc.array(call, { maxLength: 120 }), calls => {
      const counts = new Map<string, number>()
      for (const ended of calls) {
        const kind = failureOfCall(ended)
        if ((kind === null) !== (ended.answered_at !== null)) throw new Error('only unanswered calls failed')
        if (kind) counts.set(JSON.stringify(kind), (counts.get(JSON.stringify(kind)) ?? 0) + 1)
      }
      const failures = [...counts].map(([kind, calls]) => ({ ...JSON.parse(kind), calls }))
      const figures = calls.map(figuresOfCall).reduce(add, NO_FIGURES)
      const { top_failures, failed } = metricsOf(figures, figures, failures)
      const sorted = [...top_failures].sort((a, b) => b.calls - a.calls)
      if (sorted.some(({ calls }, at) => calls !== top_failures[at]?.calls)) throw new Error('most first')
      if (counts.size <= 10 && top_failures.reduce((sum, { calls }) => sum + calls, 0) !== failed)
        throw new Error('every failed call is in one kind')
      for (const { calls, share_pct } of top_failures)
        if (share_pct !== ((calls / failed) * 100).toFixed(1)) throw new Error(share_pct)
    }),
  )
  t.same(
    metricsOf({ ...NO_FIGURES, attempts: 4, answered: 1 }, NO_FIGURES, [
      { platform_reason: 'busy', sip_code: 486, calls: 1 },
      { platform_reason: 'no_route', sip_code: 404, calls: 2 },
    ]).top_failures,
    [
      { platform_reason: 'no_route', sip_code: 404, calls: 2, share_pct: '66.7' },
      { platform_reason: 'busy', sip_code: 486, calls: 1, share_pct: '33.3' },
    ],
  )
})

t.test('a figure that cannot be computed carries the reason', async t => {
  const nothing = metricsOf(NO_FIGURES, NO_FIGURES, [])
  t.match(nothing, { acd_seconds: null, acd_reason: /no call/, pdd_ms: null, pdd_reason: /no call/, asr_7d_pct: null })
  t.match(mediaMetricsOf(NO_FIGURES).unavailable_reason, /no call/)
  const unanswered = { ...NO_FIGURES, attempts: 3 }
  t.match(metricsOf(unanswered, unanswered, []), { asr_7d_pct: '0.0', acd_reason: /answered/ })
  t.match(mediaMetricsOf(unanswered).unavailable_reason, /no call was answered/)
  t.match(mediaMetricsOf({ ...unanswered, answered: 1 }).unavailable_reason, /without statistics/)
})

t.test('an answered call with no packet in one direction for four seconds is one-way', async t => {
  const figures = (media: object, duration_seconds: number) =>
    figuresOfCall({
      answered_at: 'then',
      duration_seconds,
      pdd_ms: null,
      status: 'completed',
      reason: null,
      sip_code: 200,
      media: JSON.stringify(media),
    })
  const heard = { packets_received: 200, packets_lost: 0, jitter_ms: 1, mos: 4.4 }
  const silent = { packets_received: 0, packets_lost: 0, jitter_ms: 0, mos: 1 }
  t.match(figures({ a: heard, b: silent }, 4), { one_way_calls: 1, no_media_calls: 0 })
  t.match(figures({ a: heard, b: silent }, 3), { one_way_calls: 0 })
  t.match(figures({ a: silent, b: silent }, 60), { one_way_calls: 0, no_media_calls: 1, mos_legs: 0 })
  t.match(figures({ a: null, b: heard, mode: null }, 60), { one_way_calls: 0, no_media_calls: 0, mos_legs: 1 })
  t.match(figures({ a: { codec: 'PCMA' }, b: null }, 60), { measured_calls: 0 })
})

t.test('a window begins at a step boundary', async t => {
  t.equal(new Date(windowBegin(NOW, '1h')).toISOString(), '2026-11-21T13:34:00.000Z')
  t.equal(new Date(windowBegin(NOW, '24h')).toISOString(), '2026-11-20T14:00:00.000Z')
  t.equal(stepOf('1h'), MINUTE_MS)
  t.equal(stepOf('30d'), HOUR_MS)
})

t.test('the quantile of post-dial delays lies in the size of the delay that it is', async t => {
  const sizes = [0, 100, 250, 500, 1000, 1500, 2000, 3000, 5000, 8000, 15_000, 30_000]
  const delays = fc.array(fc.integer({ min: 0, max: 29_000 }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(delays, fc.constantFrom(0.5, 0.95, 1), (all, share) => {
      const ended = { answered_at: null, duration_seconds: 0, status: 'busy', reason: null, sip_code: 486, media: null }
      const figures = all.map(pdd_ms => figuresOfCall({ ...ended, pdd_ms })).reduce(add, NO_FIGURES)
      const truth = all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1] ?? 0
      const told = pddQuantile(figures, share) ?? -1
      const upper = sizes.findIndex(size => truth <= size)
      return told <= (sizes[Math.max(1, upper)] ?? 0) && told >= (sizes[Math.max(1, upper) - 1] ?? 0)
    }),
  )
  t.equal(pddQuantile(NO_FIGURES, 0.95), null)
})
