import { endCallsOfLostNodes, NodeWatch } from '../../core/state/nodes/nodes.ts'
import type { Reconciler } from './reconciler.ts'

/** Ends the calls of signaling nodes without a heartbeat. No lost call stays in progress for more than 30 s. */
export function lostNodes(): Reconciler {
  const watch = new NodeWatch()
  return {
    name: 'lost-nodes',
    period_ms: 5000,
    runs: 'everywhere',
    async run({ state, clock, bus, log }) {
      const ended = await endCallsOfLostNodes(state, clock, watch)
      if (ended.length === 0) return
      log.warn({ calls: ended.length }, 'ended the calls of lost nodes')
      bus.ring('outbox')
    },
  }
}
