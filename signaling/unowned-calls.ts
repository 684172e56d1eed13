import { type AlsoAtEnd, callsOfNode, endLostCall } from '../core/state/calls/running-calls.ts'
import type { AdmissionContext } from './admission/context.ts'
import type { AdmissionGate } from './admission/gate.ts'

/** Slots and money go back with the record of a lost call: both or neither. */
export const giveBack =
  (gate: AdmissionGate): AlsoAtEnd =>
  async (trx, row) => {
    const { sid: call_sid, answered_at } = row
    await gate.release(trx, { call_sid, duration_seconds: row.duration_seconds ?? 0, answered: answered_at !== null })
  }

/** So many sweeps of 5 s a call may be between its row and its owner. */
const LOOKS = 3

/**
 * Calls of this node that nobody runs: their row was written, and what came next failed (storage went away between two
 * writes). They are ended, so that nothing stays in progress and nothing stays taken (design section 8).
 */
export class UnownedCalls {
  #looks = new Map<string, number>()

  /** `held`: whether a call waits somewhere for its turn. Returns how many were ended. */
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
