import type { ChildEnded, Run } from '../../interpreter/types.ts'
import { dialRecordingParameters } from './recording.ts'
import type { ChildrenState, DialOutcome, RecordingState } from './state.ts'

/** Returns the outcome of a Dial from its last child's end, or without one (`ended` is null). */
export function dialOutcomeOf(
  state: ChildrenState,
  ended: ChildEnded | null,
  status: DialOutcome['status'],
): DialOutcome {
  const child = state.children.find(c => c.child === (ended?.child ?? state.winner)) ?? state.children.at(-1)
  return {
    status,
    call_sid: ended?.call_sid ?? child?.call_sid ?? null,
    duration_seconds: ended?.duration_seconds ?? null,
    bridged: child?.stage === 'bridged' || child?.stage === 'bridging',
    sip_code: ended?.sip_code ?? null,
    sip_call_id: ended?.sip_call_id ?? null,
    headers: ended?.headers ?? {},
  }
}

/** Returns the action parameters of a Dial to telephones (voice-compat.md §10). */
export function parameters(outcome: DialOutcome, recording: RecordingState | null): Record<string, string> {
  const values: Record<string, string> = { DialCallStatus: outcome.status }
  if (outcome.call_sid !== null) values['DialCallSid'] = outcome.call_sid
  if (outcome.duration_seconds !== null) values['DialCallDuration'] = String(outcome.duration_seconds)
  values['DialBridged'] = String(outcome.bridged)
  Object.assign(values, dialRecordingParameters(recording))
  if (outcome.sip_call_id !== null) values['DialSipCallId'] = outcome.sip_call_id
  if (outcome.sip_code !== null) values['DialSipResponseCode'] = String(outcome.sip_code)
  for (const [name, value] of Object.entries(outcome.headers)) values[`DialSipHeader_${name}`] = value
  return values
}

/** Returns the refusal for an unanswered caller whose script ends after this Dial. */
export function refusalOfDial({ status }: DialOutcome): Run['refusal'] {
  if (status === 'busy') return { sip_code: 486, status: 'busy' }
  if (status === 'no-answer' || status === 'canceled') return { sip_code: 480, status: 'no-answer' }
  return { sip_code: 503, status: 'failed' }
}
