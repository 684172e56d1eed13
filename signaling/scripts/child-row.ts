import { type CallRequest, hidesCaller, hopsLeft } from '../../core/domain/calls/request.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { DialChild } from '../../markup/interpreter/types.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ScriptServices } from './services.ts'

/** Reports whether a Dial's child has the caller of its parent, who withholds the number. */
export const hidesItsCaller = (parent: Pick<ScriptedCall, 'row_now'>, command: DialChild): boolean =>
  command.caller_id_source === 'parent' && hidesCaller(parent.row_now.request)

/** Builds the row of a Dial's child. */
export function childRow(
  { node_id, clock }: Pick<ScriptServices, 'node_id' | 'clock'>,
  parent: ScriptedCall,
  command: DialChild,
  to: string,
  trunk_id: string | null,
) {
  const request: CallRequest = {
    status_callback: command.status_callback?.url ?? null,
    status_callback_method: command.status_callback?.method ?? 'POST',
    status_callback_events: command.status_callback?.events ?? [],
    max_forwards: hopsLeft(parent.row_now.request),
    ...(hidesItsCaller(parent, command) ? { restricted: true as const } : {}),
  }
  return {
    sid: newId.call(),
    project_id: parent.project_id,
    account_sid: parent.row_now.account_sid,
    parent_call_sid: parent.sid,
    origin: 'dial' as const,
    direction: 'outbound-dial' as const,
    from_number: command.caller_id,
    to_number: to,
    status: 'ringing' as const,
    trunk_id,
    carrier_id: null,
    number_id: null,
    application_id: parent.row_now.application_id,
    sip_call_id: null,
    request: JSON.stringify(request),
    node_id,
    queued_at: iso(clock.now()),
    ...NOTHING_YET,
  }
}
