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

/** The node's door to admission: decided and taken in one step, given back with the end of the call. */
export interface AdmissionGate {
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

export const createGate = (node_id: string, clock: Clock): AdmissionGate => ({
  take: (db, request) => takeAdmission(db, { ...request, node_id, now_ms: clock.now() }),
  extend: (db, facts) => extendReservation(db, facts),
  release: (db, facts) => releaseAdmission(db, { ...facts, now_ms: clock.now() }),
})
