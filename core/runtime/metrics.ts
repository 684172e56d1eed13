import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { readSocket, socketsFolder, WORKS_PATH, type Works } from './works.ts'

export { Counter, Gauge, Histogram, type Registry }

const SCRAPE_TIMEOUT_MS = 1000

/** Creates the registry of a process. Every sample carries the label `process`. */
export function createMetrics(process_name: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process: process_name })
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_STEP_MS })
  // Gauges with the suffix of counters. `nodejs_active_resources` and its siblings have the same by type.
  for (const kind of ['resources', 'handles', 'requests']) registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  watchEventLoop(registry)
  return registry
}

/**
 * Period of the timer that measures the event loop: its lateness is the wait of every other event. Each firing wakes an
 * idle process; at 20 ms they were nearly all wake-ups of a resting edge. Each wait that is longer than the period is
 * measured, of shorter ones a sample.
 */
const LOOP_STEP_MS = 100

/** A metric without labels, whose value is read at each scrape. */
export type Figure = readonly [name: string, help: string, read: () => number]

/** Registers figures: those whose names end in `_total` are counters since the start of the process, others gauges. */
export function registerFigures(registry: Registry, figures: readonly Figure[]): void {
  for (const [name, help, read] of figures) {
    const options = { name, help, registers: [registry] }
    if (!name.endsWith('_total')) {
      new Gauge({
        ...options,
        collect() {
          this.set(read())
        },
      })
      continue
    }
    new Counter({
      ...options,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }
}

/** Gauges of prom-client for the same delays, with the timer's period in them, by our percentile. */
const LOOP_GAUGES = [
  ['50', 'nodejs_eventloop_lag_p50_seconds'],
  ['99', 'nodejs_eventloop_lag_p99_seconds'],
  ['100', 'nodejs_eventloop_lag_max_seconds'],
] as const

/** Registers the delays of the event loop, which prom-client measures: a second timer would wake an idle process. */
function watchEventLoop(registry: Registry): void {
  new Gauge({
    name: 'strowger_event_loop_delay_seconds',
    help: 'How long events waited for the main loop since the last scrape; percentile 100 is the longest wait',
    labelNames: ['percentile'],
    registers: [registry],
    // A registry collects in the order of registration, so prom-client's gauges have the values of this scrape.
    async collect() {
      for (const [percentile, name] of LOOP_GAUGES) {
        const measured = await registry.getSingleMetric(name)?.get()
        this.set({ percentile }, Math.max(0, (measured?.values[0]?.value || 0) - LOOP_STEP_MS / 1000))
      }
    },
  })
}

/**
 * Serves a registry on a Unix socket below `run_dir`, where the control plane's `/metrics` collects it, and what
 * `works` says, for its `/readyz/machine`.
 */
export function serveMetrics(
  run_dir: string,
  process_name: string,
  registry: Registry,
  works: () => Promise<Works> = async () => ({}),
): Promise<{ close(): void }> {
  mkdirSync(socketsFolder(run_dir), { recursive: true })
  const path = join(socketsFolder(run_dir), `${process_name}.sock`)
  rmSync(path, { force: true })
  const server = createServer(({ url }, response) => {
    const text = url === WORKS_PATH ? works().then(parts => JSON.stringify(parts)) : registry.metrics()
    text.then(
      text => response.end(text),
      error => response.writeHead(500).end(String(error)),
    )
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.unref()
      resolve({
        // Closing also removes the socket, if the user that we have become may do so.
        close: () => void server.close(),
      })
    })
  })
}

/** Collects the metrics of all processes as one Prometheus text. Omits processes that do not answer. */
export async function collectMetrics(run_dir: string): Promise<string> {
  const sockets = readdirSync(socketsFolder(run_dir)).filter(name => name.endsWith('.sock'))
  const scrape = (name: string) => readSocket(join(socketsFolder(run_dir), name), '/metrics', SCRAPE_TIMEOUT_MS)
  const texts = await Promise.all(sockets.map(name => scrape(name).catch(() => '')))
  return mergeFamilies(texts)
}

/** Merges texts by family: Prometheus requires each family once, with HELP and TYPE before its samples. */
function mergeFamilies(texts: readonly string[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>()
  for (const text of texts) {
    let current: { head: string[]; samples: string[] } | undefined
    for (const line of text.split('\n')) {
      const comment = /^# (HELP|TYPE) (\S+)/.exec(line)
      if (comment) {
        const name = comment[2] ?? ''
        current = families.get(name) ?? { head: [], samples: [] }
        families.set(name, current)
        if (!current.head.some(known => known.startsWith(`# ${comment[1]} `))) current.head.push(line)
      } else if (line !== '' && current) current.samples.push(line)
    }
  }
  return `${[...families.values()].flatMap(family => [...family.head, ...family.samples]).join('\n')}\n`
}
