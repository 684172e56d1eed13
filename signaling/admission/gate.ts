import type { Clock } from '../../core/runtime/clock.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  releaseAdmission,
  takeAdmission,
} from '../../core/state/leases.ts'
import { extendReservation } from '../../core/state/reservations.ts'

export type { AdmissionOutcome, AdmissionRequest }

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
  take(db: Db | Trx, request: Omit<AdmissionRequest, 'node_id' | 'now_ms'>): Promise<AdmissionOutcome>
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
    take: (db, request) => takeAdmission(db, { ...request, node_id, now_ms: clock.now() }),
    extend: (db, facts) => extendReservation(db, facts),
    release: (db, facts) => releaseAdmission(db, { ...facts, now_ms: clock.now() }),
  }
}
