import { Counter, type Registry, registerFigures } from '../core/runtime/metrics.ts'
import type { EngineStats } from '../native/index.ts'

interface WorkerFacts {
  readonly engine: EngineStats
  readonly clients: number
  readonly sessions: number
  readonly legs: number
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** The metrics of the worker: name, help text and source. */
const FIGURES: readonly (readonly [name: string, help: string, read: (facts: WorkerFacts) => number])[] = [
  ['strowger_media_clients', 'Connections of signaling nodes', facts => facts.clients],
  ['strowger_media_sessions', 'Open media sessions', facts => facts.sessions],
  ['strowger_media_legs', 'Open legs', facts => facts.legs],
  ['strowger_media_ports_in_use', 'RTP port pairs in use', facts => facts.engine.ports_in_use],
  ['strowger_media_ports_quarantined', 'RTP port pairs resting after use', facts => facts.engine.ports_quarantined],
  ['strowger_media_ports', 'RTP port pairs configured', facts => facts.engine.ports_total],
  ['strowger_media_recordings', 'Recordings being written', facts => facts.engine.recordings],
  [
    'strowger_media_recording_packets_dropped_total',
    'Packets that recordings lost because the disk was slow',
    facts => facts.engine.recording_packets_dropped,
  ],
  ['strowger_media_events_lost_total', 'Events of the data plane that were dropped', facts => facts.engine.events_lost],
  [
    'strowger_media_packets_received_total',
    'RTP packets received by the data plane',
    facts => sum(facts.engine.threads.map(thread => thread.packets_received)),
  ],
  [
    'strowger_media_packets_sent_total',
    'RTP packets sent by the data plane',
    facts => sum(facts.engine.threads.map(thread => thread.packets_sent)),
  ],
  [
    'strowger_media_thread_cpu_seconds_total',
    'CPU seconds of all packet threads',
    facts => sum(facts.engine.threads.map(thread => thread.cpu_seconds)),
  ],
  [
    'strowger_media_io_uring_threads',
    'Packet threads whose packets come and go by io_uring; the others use epoll',
    facts => facts.engine.threads.filter(thread => thread.io === 'io_uring').length,
  ],
  [
    'strowger_media_packet_ring_threads',
    'Packet threads that receive latched streams by a packet ring',
    facts => facts.engine.threads.filter(thread => thread.packet_ring).length,
  ],
  [
    'strowger_media_packet_ring_streams',
    'Streams that are received by a packet ring',
    facts => sum(facts.engine.threads.map(thread => thread.packet_ring_streams)),
  ],
  [
    'strowger_media_packet_ring_drops_total',
    'Packets lost because a packet ring was full',
    facts => sum(facts.engine.threads.map(thread => thread.packet_ring_drops)),
  ],
  [
    'strowger_media_realtime_threads',
    'Packet threads that run at real-time priority',
    facts => facts.engine.threads.filter(thread => thread.realtime).length,
  ],
  [
    'strowger_media_late_ticks_total',
    'Ticks of clocked sources that came more than 5 ms late',
    facts => sum(facts.engine.threads.map(thread => thread.late_ticks)),
  ],
]

/** Registers the metrics. */
export function registerMetrics(registry: Registry, facts: () => WorkerFacts): void {
  registerFigures(
    registry,
    FIGURES.map(([name, help, read]) => [name, help, () => read(facts())]),
  )
}

/** Registers the counter of recordings that ended early because of their disk, by reason. */
export function countRecordingFailures(registry: Registry): (reason: string) => void {
  const counter = new Counter({
    name: 'strowger_media_recordings_failed_total',
    help: 'Recordings that ended early because the disk was full or could not be written',
    labelNames: ['reason'],
    registers: [registry],
  })
  // Prometheus sees no increase in a series that begins with its first failure.
  for (const reason of ['disk_full', 'failed']) counter.inc({ reason }, 0)
  return reason => counter.inc({ reason })
}
