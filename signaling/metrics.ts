import { Counter, Gauge, Histogram, type Registry } from '../core/runtime/metrics.ts'
import type { Originator } from './admission/originate.ts'
import type { Context } from './b2bua/context.ts'
import type { CarrierRegistrations } from './trunks/carrier-registrations.ts'

export interface NodeMetrics {
  readonly attempts: Counter<'result'>
  readonly calls: Counter<'origin' | 'status'>
  readonly refusals: Counter<'reason'>
  readonly pdd: Histogram
  /** Reads figures that live elsewhere at each scrape. */
  gauge(name: string, help: string, read: () => number): void
}

export function createNodeMetrics(registry: Registry): NodeMetrics {
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
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read())
        },
      })
    },
  }
}

/** Figures of what a node holds now. */
export function exposeNode(ctx: Context, originator: Originator, registrations: CarrierRegistrations): void {
  const { metrics, sip, media, calls, registrar, rooms, queues } = ctx
  const gauges: readonly (readonly [name: string, help: string, read: () => number])[] = [
    ['strowger_live_calls', 'Calls that run on this node', () => calls.size],
    ['strowger_dialogs', 'SIP dialogs of this node', () => sip.counts().dialogs],
    [
      'strowger_sip_transactions',
      'SIP requests and answers that wait for the SIP server',
      () => sip.counts().transactions,
    ],
    ['strowger_media_listeners', 'Legs and recordings that this node listens to', () => media.listening],
    ['strowger_registrations', 'Contacts registered by digest users', () => registrar.size],
    ['strowger_carrier_registrations', 'Carriers that know us by registration', () => registrations.registered],
    ['strowger_conferences', 'Conferences of this node', () => rooms.size],
    ['strowger_queued_callers', 'Callers that wait in queues of this node', () => queues.waiting],
    ['strowger_calls_waiting', 'API calls that wait for their turn', () => originator.waiting],
    ['strowger_draining', '1 while this node takes no new call', () => Number(ctx.draining())],
    ['strowger_edge_connected', '1 while the link to the SIP server stands', () => Number(sip.connected)],
    ['strowger_media_connected', '1 while the media worker is there', () => Number(media.connected)],
  ]
  for (const [name, help, read] of gauges) metrics.gauge(name, help, read)
}
