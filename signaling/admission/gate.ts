import type { Verstat } from '../../core/domain/identity/index.ts'
import type { Reason } from '../../core/domain/reasons/index.ts'
import type { Clock, Timer } from '../../core/runtime/clock.ts'
import { type AdmissionOutcome, type AdmissionRequest, takeAdmission } from '../../core/state/calls/leases.ts'
import {
  type AdmittedCall,
  type AdmittedRow,
  admitCall,
  admitRow,
  type NewCall,
} from '../../core/state/calls/running-calls.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { extendReservation } from '../../core/state/money/reservations.ts'

/** A request for admission; the gate adds the node and the time. */
export type Ask = Omit<AdmissionRequest, 'node_id' | 'now_ms'>

/** An admission has timed out, or was not started because an earlier one is overdue. */
export class StateStalled extends Error {
  override readonly name = 'StateStalled'
  constructor(waited_ms: number) {
    super(`an admission has waited for ${Math.round(waited_ms)} ms`)
  }
}

/** Bounds an admission, so that a caller gets a 503 within 2 s while the state stalls. Its peer can then fail over. */
const DECIDES_WITHIN_MS = 1500

/** The node's access to admission. One step decides and takes the resources; the end of the call releases them. */
export interface AdmissionGate {
  /**
   * Runs the transaction of an admission. Throws StateStalled when it takes too long, and immediately while an earlier
   * one is overdue. `undo` receives the result of a transaction that completes after the timeout.
   */
  decide<T>(transaction: () => Promise<T>, undo: (late: T) => Promise<void>): Promise<T>
  /** Writes a call's row and decision atomically: with its slots and money, or with its end when it is refused. */
  admitCall(
    db: Db | Trx,
    wanted: {
      readonly call: NewCall
      readonly callers?: NewCall | null
      readonly asks: readonly Ask[]
      readonly verstat?: Verstat | null
    },
  ): Promise<AdmittedCall>
  /** The same for a call that has a row. A call of one side that is refused for the reason `waits_for` stays queued. */
  admitRow(db: Db | Trx, asks: readonly Ask[], waits_for: Reason | null): Promise<AdmittedRow>
  take(db: Db | Trx, ask: Ask): Promise<AdmissionOutcome>
  extend(
    db: Db | Trx,
    facts: { readonly call_sid: string; readonly elapsed_seconds: number },
  ): Promise<{ readonly paid_until_seconds: number | null; readonly exhausted: boolean }>
}

export function createGate(node_id: string, clock: Clock): AdmissionGate {
  /** The start times of the running transactions, oldest first. */
  const running = new Set<{ readonly since_ms: number }>()
  return {
    async decide(transaction, undo) {
      const now_ms = clock.monotonic_ms()
      for (const { since_ms } of running)
        if (now_ms - since_ms > DECIDES_WITHIN_MS) throw new StateStalled(now_ms - since_ms)
      const mine = { since_ms: now_ms }
      running.add(mine)
      const decided = transaction().finally(() => running.delete(mine))
      const stalled = Symbol()
      let timer: Timer | undefined
      const deadline = new Promise<typeof stalled>(resolve => {
        timer = clock.after(DECIDES_WITHIN_MS, () => resolve(stalled))
      })
      const first = await Promise.race([decided, deadline]).finally(() => timer?.cancel())
      if (first !== stalled) return first
      // A transaction that fails later leaves nothing to undo; its caller has been refused already.
      decided.then(undo, () => undefined)
      throw new StateStalled(DECIDES_WITHIN_MS)
    },
    admitCall(db, { call, callers = null, asks, verstat = null }) {
      const now_ms = clock.now()
      const requests = asks.map(ask => ({ ...ask, node_id, now_ms }))
      return admitCall(db, { call, callers, requests, verstat, now_ms }, DECIDES_WITHIN_MS)
    },
    admitRow(db, asks, waits_for) {
      const now_ms = clock.now()
      return admitRow(db, { requests: asks.map(ask => ({ ...ask, node_id, now_ms })), waits_for, now_ms })
    },
    take: (db, ask) => takeAdmission(db, { ...ask, node_id, now_ms: clock.now() }),
    extend: (db, facts) => extendReservation(db, facts),
  }
}
