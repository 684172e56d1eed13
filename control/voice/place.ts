import type { CallRequest } from '../../core/domain/calls/request.ts'
import { type CallRow, queueCall } from '../../core/state/calls.ts'
import type { Trx } from '../../core/state/index.ts'
import { takeAdmission } from '../../core/state/leases.ts'
import type { NumberRow } from '../../core/state/numbers.ts'
import type { VoiceAccountOfProject } from '../../core/state/voice-accounts.ts'
import { forReason, type VoiceRefusal } from './errors.ts'

/** A call that a project's program wants, every field of it read and found good. */
export interface Placing {
  readonly sid: string
  readonly account: VoiceAccountOfProject
  readonly to: string
  readonly from: string
  /** The project's number that `from` is. */
  readonly number: NumberRow
  readonly request: CallRequest
  readonly now_ms: number
}

/**
 * Asks admission, without taking anything, and queues the call. Calls per second do not refuse here, the call waits its
 * turn in the queue; what is known only when the call leaves shows on the call (design section 4).
 */
export async function placeCall(trx: Trx, placing: Placing): Promise<CallRow | VoiceRefusal> {
  const { sid, account, to, from, number, request, now_ms } = placing
  const { project_id, account_sid } = account
  const application_id = number.route_kind === 'voice_application' ? number.route_id : null
  const outcome = await takeAdmission(
    trx,
    {
      call_sid: sid,
      part: 'outbound',
      node_id: 'control',
      project_id,
      service: { type: 'voice_application', id: application_id ?? project_id },
      called: to,
      caller: request.caller_id ?? from,
      transport: null,
      offer: null,
      now_ms,
    },
    { dry_run: true },
  )
  if (!outcome.admitted && outcome.reason !== 'cps_exceeded') return forReason(outcome.reason, outcome.facts)
  return queueCall(
    trx,
    {
      sid,
      project_id,
      account_sid,
      from_number: from,
      to_number: to,
      number_id: number.id,
      application_id,
      trunk_id: outcome.trunk_id,
      request: JSON.stringify(request),
    },
    now_ms,
  )
}
