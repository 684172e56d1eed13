import { Counter, Histogram, type Registry } from '../../core/runtime/metrics.ts'

export interface CallMetrics {
  readonly attempts: Counter<'result'>
  readonly calls: Counter<'origin' | 'status'>
  readonly refusals: Counter<'reason'>
  readonly pdd: Histogram
  readonly agent_turns: Histogram<'part'>
}

export function createCallMetrics(registry: Registry): CallMetrics {
  const registers = [registry]
  return {
    attempts: new Counter({
      name: 'strowger_call_attempts_total',
      help: 'INVITEs sent to targets, by result',
      labelNames: ['result'],
      registers,
    }),
    calls: new Counter({
      name: 'strowger_calls_total',
      help: 'Calls ended, by origin and final status',
      labelNames: ['origin', 'status'],
      registers,
    }),
    refusals: new Counter({
      name: 'strowger_call_refusals_total',
      help: 'Calls refused before any INVITE left, by reason',
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
  }
}
