import type { LegFigures } from '../../core/domain/calls/leg-figures.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import { LabelNames } from '../../core/runtime/label-names.ts'
import { Counter, Histogram, type Registry } from '../../core/runtime/metrics.ts'

/** A call that has ended, as the metrics count it. */
interface EndedCall {
  readonly origin: string
  readonly status: string
  readonly trunk_id: string | null
  readonly carrier_id: string | null
  readonly project_id: string
  /** Whole seconds from the answer to the end. */
  readonly seconds: number
}

export interface CallMetrics {
  readonly attempts: Counter<'result'>
  readonly refusals: Counter<'reason'>
  readonly pdd: Histogram
  readonly agent_turns: Histogram<'part'>
  ended(call: EndedCall): void
  /** Observes the final figures of a leg. */
  measured(figures: LegFigures): void
}

/** Places of trunks, carriers and projects that have a series of their own, each. */
const MOST_NAMES = 200
const IDLE_MS = 3_600_000
const STATUSES = ['completed', 'busy', 'no-answer', 'canceled', 'failed']

export function createCallMetrics(registry: Registry, clock: Pick<Clock, 'monotonic_ms'>): CallMetrics {
  const registers = [registry]
  const calls = new Counter({
    name: 'strowger_calls_total',
    help: 'Calls ended, by origin and final status',
    labelNames: ['origin', 'status'],
    registers,
  })
  const of = {
    trunk: countersOf(registry, 'trunk'),
    carrier: countersOf(registry, 'carrier'),
    project: countersOf(registry, 'project'),
  }
  return {
    attempts: new Counter({
      name: 'strowger_call_attempts_total',
      help: 'INVITEs sent to targets, by result',
      labelNames: ['result'],
      registers,
    }),
    refusals: new Counter({
      name: 'strowger_call_refusals_total',
      help: 'Calls refused before any INVITE left, by reason; sip_<code> where a rule of SIP refuses',
      labelNames: ['reason'],
      registers,
    }),
    pdd: new Histogram({
      name: 'strowger_post_dial_delay_seconds',
      help: 'From INVITE out to first 18x or 200',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13],
      registers,
    }),
    agent_turns: new Histogram({
      name: 'strowger_agent_turn_seconds',
      help: "From the end of a caller's speech to a relay application's answer, in parts and in total",
      labelNames: ['part'],
      buckets: [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2, 3, 5, 10],
      registers,
    }),
    ended({ origin, status, trunk_id, carrier_id, project_id, seconds }) {
      const now_ms = clock.monotonic_ms()
      calls.inc({ origin, status })
      of.project(project_id, status, seconds, now_ms)
      if (trunk_id !== null) of.trunk(trunk_id, status, seconds, now_ms)
      if (carrier_id !== null) of.carrier(carrier_id, status, seconds, now_ms)
    },
    measured: legHistograms(registry),
  }
}

/** Returns the counters of ended calls by the id of a trunk, a carrier or a project. */
function countersOf(registry: Registry, level: 'trunk' | 'carrier' | 'project') {
  const registers = [registry]
  const calls = new Counter({
    name: `strowger_${level}_calls_total`,
    help: `Calls ended, by ${level} and final status`,
    labelNames: [level, 'status'],
    registers,
  })
  const talked = new Counter({
    name: `strowger_${level}_call_seconds_total`,
    help: `Seconds from answer to end of the ended calls, by ${level}`,
    labelNames: [level],
    registers,
  })
  const names = new LabelNames({
    most: MOST_NAMES,
    idle_ms: IDLE_MS,
    gone(name) {
      for (const status of STATUSES) calls.remove({ [level]: name, status })
      talked.remove({ [level]: name })
    },
  })
  return (id: string, status: string, seconds: number, now_ms: number): void => {
    const name = names.labelOf(id, now_ms)
    calls.inc({ [level]: name, status })
    if (seconds > 0) talked.inc({ [level]: name }, seconds)
  }
}

/** Returns what observes the quality of a leg: what its peer sent, from the counters of its whole life. */
function legHistograms(registry: Registry): (figures: LegFigures) => void {
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: ['side'], buckets, registers: [registry] })
  const mos = histogram('strowger_leg_mos', 'Estimated quality of what came (ITU-T G.107), 1 to 4.5, of ended legs', [
    ...[1.5, 2, 2.5, 3, 3.3, 3.6, 3.9, 4.1, 4.3],
  ])
  const jitter = histogram('strowger_leg_jitter_seconds', 'Mean interarrival jitter (RFC 3550) of ended legs', [
    ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2],
  ])
  const loss = histogram('strowger_leg_loss_ratio', 'Share of packets lost on the way to us, of ended legs', [
    ...[0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2],
  ])
  return ({ side, mos: quality, jitter_ms, packets_received, packets_lost }) => {
    if (packets_received === 0) return
    if (quality !== null) mos.observe({ side }, quality)
    if (jitter_ms !== null) jitter.observe({ side }, jitter_ms / 1000)
    // More packets than were expected can arrive: duplicates make the loss negative (RFC 3550 §A.3).
    const lost = Math.max(0, packets_lost)
    loss.observe({ side }, lost / (packets_received + lost))
  }
}
