import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export { Counter, Gauge, Histogram, type Registry }

const SCRAPE_TIMEOUT_MS = 1000
const socketsFolder = (run_dir: string): string => join(run_dir, 'metrics')

/** Creates the registry of a process. Every sample carries the label `process`. */
export function createMetrics(process_name: string): Registry {
  const registry = new Registry()
  registry.setDefaultLabels({ process: process_name })
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_STEP_MS })
  watchEventLoop(registry)
  return registry
}

/**
 * Period of the timer that measures the event loop: its lateness is the wait of every other event. Each firing wakes an
 * idle process; at 10 ms the firings took 3 % of the CPU of a call.
 */
const LOOP_STEP_MS = 20

function watchEventLoop(registry: Registry): void {
  const delays = monitorEventLoopDelay({ resolution: LOOP_STEP_MS })
  delays.enable()
  new Gauge({
    name: 'strowger_event_loop_delay_seconds',
    help: 'How long events waited for the main loop since the last scrape; quantile 1 is the longest wait',
    labelNames: ['quantile'],
    registers: [registry],
    collect() {
      const late = (nanoseconds: number): number => Math.max(0, (nanoseconds || 0) / 1e9 - LOOP_STEP_MS / 1000)
      const max = delays.count === 0 ? 0 : delays.max
      for (const [quantile, value] of [
        ['0.5', delays.percentile(50)],
        ['0.99', delays.percentile(99)],
        ['1', max],
      ] as const)
        this.set({ quantile }, late(value))
      delays.reset()
    },
  })
}

/** Serves a registry on a Unix socket below `run_dir`, where the control plane's `/metrics` collects it. */
export function serveMetrics(run_dir: string, process_name: string, registry: Registry): Promise<{ close(): void }> {
  mkdirSync(socketsFolder(run_dir), { recursive: true })
  const path = join(socketsFolder(run_dir), `${process_name}.sock`)
  rmSync(path, { force: true })
  const server = createServer((_request, response) => {
    registry.metrics().then(
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
  const texts = await Promise.all(sockets.map(name => scrape(join(socketsFolder(run_dir), name)).catch(() => '')))
  return mergeFamilies(texts)
}

function scrape(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path: '/metrics', timeout: SCRAPE_TIMEOUT_MS }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      response.on('error', reject)
    })
    call.on('timeout', () => call.destroy(new Error('timeout')))
    call.on('error', reject)
    call.end()
  })
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
