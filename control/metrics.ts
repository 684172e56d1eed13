import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, iso } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { Counter, Gauge, Histogram, type Registry } from '../core/runtime/metrics.ts'
import type { State } from '../core/state/index.ts'
import { backlog } from '../core/state/maintenance/backlog.ts'

const APIS: readonly (readonly [api: string, begins: RegExp])[] = [
  ['v1', /^\/v1\b/],
  ['voice', /^\/2010-04-01\b/],
  ['general', /^(\/sandbox)?\/api\/v1\b/],
  ['console', /^\/console\b/],
  ['operations', /^\/(healthz|readyz|readyz\/machine|metrics)$/],
]

const apiOf = (url: string): string => APIS.find(([, begins]) => begins.test(url.replace(/[?#].*/, '')))?.[0] ?? 'other'

/** Registers the control plane's metrics (docs/metrics.md): its requests, and the backlog in the database. */
export function exposeControl(options: {
  readonly metrics: Registry
  readonly state: State
  readonly clock: Clock
  readonly log: Log
}): { stop(): void } {
  exposeBacklog(options)
  return exposeRequests(options.metrics, options.clock)
}

/** The start time of a request, stored on the request: a map of requests would burden the garbage collector. */
const BEGUN = Symbol('begun')
type Timed = IncomingMessage & { [BEGUN]?: number }

/** Counts and times requests by the diagnostics channels of Node's HTTP server: every request, whoever answers it. */
function exposeRequests(metrics: Registry, clock: Clock): { stop(): void } {
  const registers = [metrics]
  const requests = new Counter({
    name: 'strowger_http_requests_total',
    help: 'HTTP requests answered, by API, method and status',
    labelNames: ['api', 'method', 'status'] as const,
    registers,
  })
  const durations = new Histogram({
    name: 'strowger_http_request_duration_seconds',
    help: 'From the head of a request to the end of its answer, by API',
    labelNames: ['api'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const started = (message: unknown): void => {
    const { request } = message as { request: Timed }
    request[BEGUN] = clock.monotonic_ms()
  }
  const finished = (message: unknown): void => {
    const { request, response } = message as { request: Timed; response: ServerResponse }
    // Skips the collection of metrics, which comes over a Unix socket and so has no address.
    if (request.socket.remoteAddress === undefined) return
    const api = apiOf(request.url ?? '')
    requests.inc({ api, method: request.method ?? '', status: response.statusCode })
    const from = request[BEGUN]
    if (from !== undefined) durations.observe({ api }, (clock.monotonic_ms() - from) / 1000)
  }
  subscribe('http.server.request.start', started)
  subscribe('http.server.response.finish', finished)
  return {
    stop() {
      unsubscribe('http.server.request.start', started)
      unsubscribe('http.server.response.finish', finished)
    },
  }
}

function exposeBacklog(options: {
  readonly metrics: Registry
  readonly state: State
  readonly clock: Clock
  readonly log: Log
}): void {
  const { metrics, state, clock, log } = options
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({ name: `strowger_${name}`, help, registers: [metrics] })
  const gauges = {
    alerts_open: gauge('alerts_open', 'Alerts that are not resolved'),
    alerts_critical: gauge('alerts_critical', 'Critical alerts that are not resolved'),
    containments_open: gauge('containments_open', 'Prefixes that are closed now'),
    notifications_waiting: gauge('notifications_waiting', 'Messages about alerts that wait to be sent'),
    webhook_deliveries_waiting: gauge('webhook_deliveries_waiting', 'Events that wait for webhook endpoints'),
    trunks_behind: gauge('trunks_behind', 'Trunks whose saved revision is not in force at every live signaling node'),
    sources_waiting: gauge('sources_waiting', 'Sources of trunks that wait for an operator'),
    sources_name_only: gauge('sources_name_only', "Sources that overlap another tenant's and count by name alone"),
  }
  // One query at each scrape sets all of these gauges.
  new Gauge({
    name: 'strowger_state_bytes',
    help: 'Size of the database and its log',
    registers: [metrics],
    async collect() {
      try {
        this.set(await state.maintenance.bytes())
        const counts = await backlog(state.db, iso(clock.now()))
        for (const name of Object.keys(gauges) as (keyof typeof gauges)[]) gauges[name].set(counts[name])
      } catch (err) {
        // A failure here must not lose the other metrics of the process.
        log.warn({ err }, 'the backlog could not be counted')
        for (const one of Object.values(gauges)) one.set(Number.NaN)
      }
    },
  })
}
