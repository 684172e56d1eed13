import { callsOfNode, endLostCall } from '../core/state/calls/running-calls.ts'
import type { AdmissionContext } from './admission/context.ts'

/** The number of sweeps, 5 s apart, that must find a call without an owner before it is ended. */
const LOOKS = 3

/**
 * Ends calls of this node that no object owns: their row was written, and the next step failed, for example because the
 * storage went away. Otherwise they would stay in progress and keep their slots and money (design section 8).
 */
export class UnownedCalls {
  #looks = new Map<string, number>()

  /** Ends calls that have been unowned for LOOKS sweeps; returns their number. `held`: whether a call is queued. */
  async sweep(ctx: AdmissionContext, held: (sid: string) => boolean): Promise<number> {
    const looks = new Map<string, number>()
    let ended = 0
    for (const row of await callsOfNode(ctx.state.db, ctx.node_id)) {
      if (ctx.calls.get(row.sid) || held(row.sid)) continue
      const seen = (this.#looks.get(row.sid) ?? 0) + 1
      looks.set(row.sid, seen)
      if (seen < LOOKS) continue
      await endLostCall(ctx.state, row, { cause: 'internal', ended_ms: ctx.clock.now() })
      ctx.log.error({ call_id: row.sid }, 'a call without an owner was ended')
      ended++
    }
    this.#looks = looks
    return ended
  }
}
