import { releaseAdmission } from '../../core/state/calls/leases.ts'
import { endCallsOfLostNodes } from '../../core/state/nodes/nodes.ts'
import type { Reconciler } from './reconciler.ts'

/** Ends the calls of signaling nodes without a heartbeat. No lost call stays in progress for more than 30 s. */
export const lostNodes: Reconciler = {
  name: 'lost-nodes',
  period_ms: 5000,
  async run({ state, clock, bus, log }) {
    const ended = await endCallsOfLostNodes(state, clock, {
      // The slots and the money are released in the transaction that writes the call's record.
      async also(trx, call, now_ms) {
        const duration_seconds = call.duration_seconds ?? 0
        await releaseAdmission(trx, {
          call_sid: call.sid,
          answered: call.answered_at !== null,
          duration_seconds,
          now_ms,
        })
      },
    })
    if (ended.length === 0) return
    log.warn({ calls: ended.length }, 'ended the calls of lost nodes')
    bus.ring('outbox')
  },
}
