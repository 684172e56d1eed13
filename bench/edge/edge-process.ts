import { readdirSync } from 'node:fs'
import { createEdge } from '../../signaling/edge/index.ts'

// The edge of the benchmark, in its own process. It reports its ports, and on request its CPU time and memory.

const edge = await createEdge({
  listeners: [
    { protocol: 'udp', host: '127.0.0.1', port: 0 },
    { protocol: 'tcp', host: '127.0.0.1', port: 0, same_port: true },
  ],
  control: { host: '127.0.0.1', port: 0, secret: 'bench' },
  isConfiguredSource: () => true,
})

process.on('message', (question: string) => {
  if (question === 'stop') process.exit(0)
  // Collect garbage only for measurements of memory, so that it does not count as CPU time of calls.
  if (question === 'collect') {
    const collect = (globalThis as { gc?: () => void }).gc
    collect?.()
    collect?.()
  }
  const { user, system } = process.cpuUsage()
  const { heapUsed, external, rss } = process.memoryUsage()
  const descriptors = readdirSync('/proc/self/fd').length
  const heap_bytes = heapUsed + external
  process.send?.({ cpu_us: user + system, heap_bytes, rss_bytes: rss, descriptors, stats: edge.stats() })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ sip_port: edge.listeners[0]?.port, control_port: edge.control.port })
