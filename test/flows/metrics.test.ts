import { iso, systemClock } from '../../core/runtime/clock.ts'
import { controlPlane } from '../support/control-plane.ts'
import { HOUR_MS, trunkOf } from '../support/ended-calls.ts'
import t from '../support/harness/index.ts'
import { countDay, type Record, simulatedCalls } from '../support/simulated-day.ts'

const SEED = 20_260_311
const CALLS = 50_000
const NOW_MS = Date.parse('2026-03-11T12:34:56.789Z')
const HOURS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 } as const

const round = (value: number, decimals: number): number => Math.round(value * 10 ** decimals) / 10 ** decimals
const sum = <T>(list: readonly T[], of: (one: T) => number): number => list.reduce((total, one) => total + of(one), 0)
const pct = (part: number, whole: number, decimals: number): string => ((100 * part) / whole).toFixed(decimals)

/** The media facts of the records, parsed once. */
const read = new Map<Record, ReturnType<typeof JSON.parse>>()

/** Computes the figures of a window call by call. */
function counted(calls: readonly Record[], window: keyof typeof HOURS) {
  const step_ms = window === '1h' ? 60_000 : HOUR_MS
  const begin = iso(Math.floor((NOW_MS - HOURS[window] * HOUR_MS) / step_ms) * step_ms)
  const inside = calls.filter(call => call.ended_at >= begin)
  const answered = inside.filter(call => call.answered_at !== null)
  const failed = inside.filter(call => call.answered_at === null)
  const rung = inside.filter(call => call.pdd_ms !== null)
  const reasons = new Map<string, number>()
  for (const call of failed) {
    const key = JSON.stringify([call.reason ?? call.status, call.sip_code])
    reasons.set(key, (reasons.get(key) ?? 0) + 1)
  }
  const measured = answered.flatMap(call => {
    const media = read.get(call)
    return media ? [{ legs: [media.a, media.b], mode: media.mode, seconds: call.duration_seconds }] : []
  })
  const legs = measured.flatMap(one => one.legs)
  const heard = legs.filter(leg => leg.packets_received > 0)
  const deaf = (one: { legs: { packets_received: number }[] }) =>
    one.legs.filter(leg => leg.packets_received === 0).length
  const received = sum(legs, leg => leg.packets_received)
  const lost = sum(legs, leg => leg.packets_lost)
  return {
    metrics: {
      attempts: inside.length,
      answered: answered.length,
      failed: failed.length,
      acd_seconds: Math.round(sum(answered, call => call.duration_seconds) / answered.length),
      pdd_ms: Math.round(sum(rung, call => call.pdd_ms ?? 0) / rung.length),
      top_failures: [...reasons]
        .map(([key, calls]) => {
          const [platform_reason, sip_code] = JSON.parse(key) as [string, number | null]
          return { calls, platform_reason, sip_code, share_pct: pct(calls, failed.length, 1) }
        })
        .sort((one, other) => other.calls - one.calls || (one.platform_reason < other.platform_reason ? -1 : 1)),
      window_hours: HOURS[window],
    },
    media: {
      jitter_ms: round(sum(heard, leg => leg.jitter_ms) / heard.length, 2),
      mos: round(sum(heard, leg => leg.mos) / heard.length, 2),
      packet_loss_pct: pct(lost, received + lost, 2),
      no_media_calls: measured.filter(one => deaf(one) === 2).length,
      one_way_calls: measured.filter(one => deaf(one) === 1 && one.seconds >= 4).length,
      transcoded_calls: measured.filter(one => one.mode === 'transcode').length,
      unavailable_reason: null,
      window_hours: HOURS[window],
    },
  }
}

t.test('the metrics of a simulated day equal a count of its calls', async t => {
  t.comment(`${CALLS} calls of seed ${SEED}`)
  const w = await controlPlane(t, { clock: { ...systemClock, now: () => NOW_MS } })
  const trunk_ids = [await trunkOf(w, 'One'), await trunkOf(w, 'Two'), await trunkOf(w, 'Three')]
  // A little more than a day, so that the window's edge falls between calls.
  const day = {
    ...{ seed: SEED, count: CALLS, project_id: w.demo.project_id, trunk_ids },
    ...{ end_ms: NOW_MS, span_ms: 27 * HOUR_MS },
  }
  await countDay(w.settings.data_dir, day)
  const calls = [...simulatedCalls(day)]
  for (const call of calls) if (typeof call.media === 'string') read.set(call, JSON.parse(call.media))
  const real = calls.filter(call => call.origin !== 'test')
  for (const [at, trunk_id] of trunk_ids.entries()) {
    const own = real.filter(call => call.trunk_id === trunk_id)
    const asr = pct(own.filter(call => call.answered_at !== null).length, own.length, 1)
    for (const window of ['1h', '24h', '7d', '30d'] as const) {
      const wanted = counted(own, window)
      const metrics = await w.ask('GET', `/v1/trunks/${trunk_id}/metrics?window=${window}`)
      const nothing_missing = { acd_reason: null, pdd_reason: null, asr_7d_pct: asr, as_of: iso(NOW_MS) }
      t.same(metrics.body, { ...wanted.metrics, ...nothing_missing }, `metrics of trunk ${at + 1}, ${window}`)
      const media = await w.ask('GET', `/v1/trunks/${trunk_id}/diagnostics?window=${window}`)
      t.same(media.body.media, { ...wanted.media, as_of: iso(NOW_MS) }, `diagnostics of trunk ${at + 1}, ${window}`)
    }
  }
  const project = (await w.ask('GET', '/v1/metrics?window=7d')).body
  t.equal(project.attempts, real.length, 'the project counts every call once, those of no trunk too')
  t.equal(project.answered, real.filter(call => call.answered_at !== null).length)
})
