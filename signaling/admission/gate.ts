import type { Verdict } from '../../core/domain/admission/index.ts'
import type { ParsedNumber } from '../../core/domain/numbers/parse.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import type { Transport } from '../drachtio/types.ts'

/** What the node asks of admission; carried out by core/state/leases.ts, in one step with the taking of the ceilings. */

export interface AdmissionRequest {
  readonly call_sid: string
  readonly part: 'outbound' | 'inbound'
  readonly node_id: string
  readonly project_id: string
  readonly service: {
    readonly type: 'trunk' | 'subtrunk' | 'voice_application' | 'automation'
    readonly id: string
  }
  /** As given; national formats are understood. */
  readonly called: string
  readonly caller: string
  /** The caller of the inbound call that a Dial sends on. */
  readonly forwarded_caller?: boolean
  readonly transport: Transport | null
  readonly offer: { readonly codecs: string[]; readonly sdes_srtp: boolean } | null
  readonly test?: boolean
  /** Usable targets of the trunk itself; null: counted from rows. */
  readonly own_targets: number | null
}

export type AdmissionOutcome = Verdict & {
  readonly called: ParsedNumber | null
  readonly caller_e164: string | null
  readonly trunk_id: string | null
  readonly paid_until_seconds: number | null
}

export interface AdmissionGate {
  take(db: Db | Trx, request: AdmissionRequest): Promise<AdmissionOutcome>
  answered(db: Db | Trx, facts: { readonly call_sid: string; readonly answered_at_ms: number }): Promise<unknown>
  extend(
    db: Db | Trx,
    facts: { readonly call_sid: string; readonly elapsed_seconds: number },
  ): Promise<{ readonly paid_until_seconds: number | null; readonly ended: boolean }>
  /** In the transaction of the CDR; safe to repeat. */
  release(
    db: Db | Trx,
    facts: { readonly call_sid: string; readonly duration_seconds: number; readonly answered: boolean },
  ): Promise<unknown>
}
