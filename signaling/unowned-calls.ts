import { type AlsoAtEnd, callsOfNode, endLostCall } from '../core/state/calls/running-calls.ts'
import type { AdmissionContext } from './admission/context.ts'
import type { AdmissionGate } from './admission/gate.ts'

/** Releases the slots and money of a lost call in the same transaction as its CDR. */
export const giveBack =
  (gate: AdmissionGate): AlsoAtEnd =>
  async (trx, row) => {
    const { sid: call_sid, answered_at } = row
    await gate.release(trx, { call_sid, duration_seconds: row.duration_seconds ?? 0, answered: answered_at !== null })
  }

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
      await endLostCall(ctx.state, row, { cause: 'internal', ended_ms: ctx.clock.now() }, giveBack(ctx.gate))
      ctx.log.error({ call_id: row.sid }, 'a call without an owner was ended')
      ended++
    }
    this.#looks = looks
    return ended
  }
}
