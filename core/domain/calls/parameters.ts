import { verstatText } from '../identity/passport.ts'
import type { SipOrigin } from './request.ts'

/** Parameters of requests about a call (voice-compat.md sections 6 and 7.2). Values are text; names are as sent. */

export interface CallFacts {
  readonly sid: string
  readonly account_sid: string
  readonly parent_call_sid: string | null
  readonly direction: string
  /** As presented: E.164 with plus, `sip:`, `client:`; as given on create by API. */
  readonly from: string
  readonly to: string
  readonly status: string
  readonly number_sid: string | null
  /** ISO codes of the numbers' countries, when known. */
  readonly from_country?: string | null
  readonly to_country?: string | null
  readonly forwarded_from?: string | null
  readonly caller_name?: string | null
  /** Facts of a call that came by SIP, and its X- headers. */
  readonly sip?: SipOrigin | null
}

const API_VERSION = '2010-04-01'

/** Returns the standard set of parameters. */
export function standardParameters(call: CallFacts): Record<string, string> {
  const given: Record<string, string | null | undefined> = {
    CallSid: call.sid,
    AccountSid: call.account_sid,
    ApiVersion: API_VERSION,
    From: call.from,
    To: call.to,
    Caller: call.from,
    Called: call.to,
    CallStatus: call.status,
    Direction: apiDirection(call.direction),
    ParentCallSid: call.parent_call_sid,
    ForwardedFrom: call.forwarded_from,
    CallerName: call.caller_name,
    FromCountry: call.from_country,
    CallerCountry: call.from_country,
    ToCountry: call.to_country,
    CalledCountry: call.to_country,
    PhoneNumberSid: call.number_sid,
    SipDomain: call.sip?.domain,
    SipUsername: call.sip?.username,
    SipCallId: call.sip?.call_id,
    SipSourceIp: call.sip?.source_ip,
    SipPidfLo: call.sip?.pidf_lo,
    StirVerstat: call.sip?.verstat ? verstatText(call.sip.verstat, true) : null,
  }
  const parameters: Record<string, string> = {}
  for (const [name, value] of Object.entries(given))
    if (value !== null && value !== undefined && value !== '') parameters[name] = value
  for (const [name, value] of Object.entries(call.sip?.headers ?? {})) parameters[`SipHeader_${name}`] = value
  return parameters
}

/** The compatible form has no direction for a bridged trunk call, which counts as dialled. */
const apiDirection = (direction: string): string => (direction === 'outbound' ? 'outbound-dial' : direction)

export type CallbackEvent = 'initiated' | 'ringing' | 'answered' | 'completed'

interface CallbackFacts {
  readonly event: CallbackEvent
  /** Final status for `completed`. */
  readonly status: string
  /** The number of earlier events about this call sent to this URL. */
  readonly sequence: number
  readonly at_ms: number
  readonly duration_seconds: number
  readonly sip_code: number | null
  readonly sip_call_id: string | null
}

/** Returns the parameters of a status callback, including the standard set. */
export function callbackParameters(call: CallFacts, facts: CallbackFacts): Record<string, string> {
  const last = facts.event === 'completed'
  return {
    ...standardParameters({ ...call, status: facts.event === 'answered' ? 'in-progress' : facts.status }),
    CallbackSource: 'call-progress-events',
    SequenceNumber: String(facts.sequence),
    Timestamp: rfc2822(facts.at_ms),
    ...(last
      ? {
          CallDuration: String(facts.duration_seconds),
          Duration: String(Math.ceil(facts.duration_seconds / 60)),
          ...(facts.sip_code === null ? {} : { SipResponseCode: String(facts.sip_code) }),
          ...(facts.sip_call_id === null ? {} : { SipCallId: facts.sip_call_id }),
        }
      : {}),
  }
}

export interface RecordingCallbackFacts {
  readonly account_sid: string
  readonly call_sid: string
  /** The room whose mix is recorded; null for a call. */
  readonly conference_sid: string | null
  readonly recording_sid: string
  readonly url: string
  readonly status: 'in-progress' | 'completed' | 'absent'
  readonly duration_seconds: number
  readonly channels: number
  readonly started_ms: number
  readonly source: string
  readonly track: string
  readonly error_number: number | null
}

/** Returns the parameters of a recording status callback (voice-compat.md section 10). */
export const recordingParameters = (facts: RecordingCallbackFacts): Record<string, string> => ({
  AccountSid: facts.account_sid,
  CallSid: facts.call_sid,
  ...(facts.conference_sid === null ? {} : { ConferenceSid: facts.conference_sid }),
  RecordingSid: facts.recording_sid,
  RecordingUrl: facts.url,
  RecordingStatus: facts.status,
  ...(facts.status === 'in-progress' ? {} : { RecordingDuration: String(facts.duration_seconds) }),
  RecordingChannels: String(facts.channels),
  RecordingStartTime: rfc2822(facts.started_ms),
  RecordingSource: facts.source,
  RecordingTrack: facts.track,
  ErrorCode: String(facts.error_number ?? 0),
})

/** The whole seconds of a recording, the same in callbacks, action requests and resources. */
export const recordingSeconds = (duration_ms: number): number => Math.round(duration_ms / 1000)

/** Formats a time as in RFC 2822 §3.3, in UTC with a numeric zone. */
export const rfc2822 = (at_ms: number): string => new Date(at_ms).toUTCString().replace(/GMT$/, '+0000')
