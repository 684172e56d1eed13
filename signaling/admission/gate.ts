import type { Verstat } from '../../core/domain/identity/index.ts'
import type { Reason } from '../../core/domain/reasons/index.ts'
import type { Clock } from '../../core/runtime/clock.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  releaseAdmission,
  takeAdmission,
} from '../../core/state/leases.ts'
import { extendReservation } from '../../core/state/reservations.ts'
import { type AdmittedCall, admitCall, admitRow, type NewCall } from '../../core/state/running-calls.ts'

/** An admission as signaling asks for it: the node and the time are the gate's. */
export type Ask = Omit<AdmissionRequest, 'node_id' | 'now_ms'>

/** An admission has waited for the state for so long that another one would only wait behind it. */
export class StateStalled extends Error {
  override readonly name = 'StateStalled'
  constructor(waited_ms: number) {
    super(`another admission has waited for ${Math.round(waited_ms)} ms`)
  }
}

/** Longer than SQLite waits for a lock, and with that still below the half minute after which a caller gives up. */
const STALLED_MS = 8000

/** The node's door to admission: decided and taken in one step, given back with the end of the call. */
export interface AdmissionGate {
  /** Runs the transaction of an admission. Throws StateStalled at once while an earlier one waits too long. */
  decide<T>(transaction: () => Promise<T>): Promise<T>
  /** A call with its row, its slots, its money and its decision, or with its end: all of it or nothing. */
  admitCall(
    db: Db | Trx,
    wanted: { readonly call: NewCall; readonly asks: readonly Ask[]; readonly verstat?: Verstat | null },
  ): Promise<AdmittedCall>
  /** The same for a call that has its row. `waits_for`: refused for this, it stays queued. */
  admitRow(db: Db | Trx, ask: Ask, waits_for: Reason | null): Promise<Omit<AdmittedCall, 'row'>>
  take(db: Db | Trx, ask: Ask): Promise<AdmissionOutcome>
  extend(
    db: Db | Trx,
    facts: { readonly call_sid: string; readonly elapsed_seconds: number },
  ): Promise<{ readonly paid_until_seconds: number | null; readonly exhausted: boolean }>
  /** In the transaction of the CDR; safe to repeat. */
  release(
    db: Db | Trx,
    facts: { readonly call_sid: string; readonly duration_seconds: number; readonly answered: boolean },
  ): Promise<unknown>
}

export function createGate(node_id: string, clock: Clock): AdmissionGate {
  /** When each transaction that runs now began, oldest first. */
  const running = new Set<{ readonly since_ms: number }>()
  return {
    async decide(transaction) {
      const now_ms = clock.monotonic_ms()
      for (const { since_ms } of running) if (now_ms - since_ms > STALLED_MS) throw new StateStalled(now_ms - since_ms)
      const mine = { since_ms: now_ms }
      running.add(mine)
      try {
        return await transaction()
      } finally {
        running.delete(mine)
      }
    },
    admitCall(db, { call, asks, verstat = null }) {
      const now_ms = clock.now()
      return admitCall(db, { call, requests: asks.map(ask => ({ ...ask, node_id, now_ms })), verstat, now_ms })
    },
    admitRow(db, ask, waits_for) {
      const now_ms = clock.now()
      return admitRow(db, { request: { ...ask, node_id, now_ms }, waits_for, now_ms })
    },
    take: (db, ask) => takeAdmission(db, { ...ask, node_id, now_ms: clock.now() }),
    extend: (db, facts) => extendReservation(db, facts),
    release: (db, facts) => releaseAdmission(db, { ...facts, now_ms: clock.now() }),
  }
}
