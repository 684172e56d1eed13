import type { CallRequest } from '../../core/domain/calls/request.ts'
import { type CallRow, placeCall } from '../../core/state/calls/calls.ts'
import type { NumberRow } from '../../core/state/configuration/numbers.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import type { VoiceAccountOfProject } from '../../core/state/people/voice-accounts.ts'
import { forReason, type VoiceRefusal } from './errors.ts'

/** A call to place for a program of a project. All fields are validated. */
export interface Placing {
  readonly sid: string
  readonly account: VoiceAccountOfProject
  readonly to: string
  readonly from: string
  /** The row of `from`, a number of the project. */
  readonly number: NumberRow
  readonly request: CallRequest
  readonly now_ms: number
}

/** Queues the call, or returns why admission refuses it now. Later refusals are reported in the call's status. */
export async function place(db: Db | Trx, placing: Placing): Promise<CallRow | VoiceRefusal> {
  const { sid, account, to, from, number, request, now_ms } = placing
  const { project_id, account_sid } = account
  const application_id = number.route_kind === 'voice_application' ? number.route_id : null
  const placed = await placeCall(db, {
    sid,
    project_id,
    account_sid,
    from_number: from,
    to_number: to,
    caller_id: request.caller_id ?? null,
    number_id: number.id,
    application_id,
    request: JSON.stringify(request),
    conference_sid: request.conference?.sid,
    now_ms,
  })
  return 'row' in placed ? placed.row : forReason(placed.refused, placed.facts)
}
