import { recordingSeconds, rfc2822 } from '../../core/domain/calls/parameters.ts'
import type { CallRow, RecordingRow } from '../../core/state/calls/calls.ts'
import { nullable, oneOf, optional, resource, type Static, Type } from '../http/schema.ts'

const Text = Type.String()
const TextOrNull = nullable(Type.String())
const Nothing = Type.Null()

export const VoiceCall = resource('VoiceCall', {
  sid: Text,
  account_sid: Text,
  api_version: Text,
  annotation: Nothing,
  answered_by: Nothing,
  caller_name: Nothing,
  date_created: Text,
  date_updated: Text,
  direction: Text,
  duration: TextOrNull,
  end_time: TextOrNull,
  forwarded_from: Nothing,
  from: Text,
  from_formatted: Text,
  group_sid: Nothing,
  parent_call_sid: TextOrNull,
  phone_number_sid: TextOrNull,
  price: TextOrNull,
  price_unit: TextOrNull,
  queue_time: Text,
  start_time: TextOrNull,
  status: oneOf('queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'canceled', 'failed'),
  subresource_uris: resource('VoiceCallSubresources', { recordings: Text, events: Text }),
  to: Text,
  to_formatted: Text,
  trunk_sid: Nothing,
  uri: Text,
})

export const API_VERSION = '2010-04-01'

/** Formats an instant as in RFC 2822 §3.3, always in UTC: `Sat, 21 Nov 2026 02:48:35 +0000`. */
export const dateText = (instant: string): string => rfc2822(Date.parse(instant))

const dateOrNull = (instant: string | null): string | null => (instant === null ? null : dateText(instant))

export const accountPath = (account_sid: string): string => `/${API_VERSION}/Accounts/${account_sid}`

export function presentVoiceCall(row: CallRow): Static<typeof VoiceCall> {
  const account_sid = row.account_sid ?? ''
  const path = `${accountPath(account_sid)}/Calls/${row.sid}`
  return {
    sid: row.sid,
    account_sid,
    api_version: API_VERSION,
    annotation: null,
    answered_by: null,
    caller_name: null,
    date_created: dateText(row.queued_at),
    date_updated: dateText(row.updated_at),
    // This API has three directions. A call that a customer's PBX dialled out through a trunk is an `outbound-dial`.
    direction: row.direction === 'outbound' ? 'outbound-dial' : row.direction,
    duration: row.ended_at === null || row.duration_seconds === null ? null : String(row.duration_seconds),
    end_time: dateOrNull(row.ended_at),
    forwarded_from: null,
    from: row.from_number,
    from_formatted: row.from_number,
    group_sid: null,
    parent_call_sid: row.parent_call_sid,
    phone_number_sid: row.number_id,
    price: null,
    price_unit: null,
    queue_time: String(
      row.initiated_at === null ? 0 : Math.max(0, Date.parse(row.initiated_at) - Date.parse(row.queued_at)),
    ),
    start_time: dateOrNull(row.answered_at),
    status: row.status,
    subresource_uris: { recordings: `${path}/Recordings.json`, events: `${path}/Events.json` },
    to: row.to_number,
    to_formatted: row.to_number,
    trunk_sid: null,
    uri: `${path}.json`,
  }
}

export const VoiceRecording = resource('VoiceRecording', {
  sid: Text,
  account_sid: Text,
  call_sid: Text,
  conference_sid: optional(Text),
  channels: Type.Integer(),
  source: Text,
  status: Text,
  track: Text,
  start_time: Text,
  duration: optional(Type.Integer()),
  format: optional(Text),
  date_created: Text,
  date_updated: Text,
  uri: Text,
})

export function presentVoiceRecording(row: RecordingRow, account_sid: string): Static<typeof VoiceRecording> {
  const finished = row.status === 'completed'
  return {
    sid: row.sid,
    account_sid,
    call_sid: row.call_sid,
    ...(row.conference_sid === null ? {} : { conference_sid: row.conference_sid }),
    channels: row.channels,
    source: row.source,
    status: row.status,
    track: row.track,
    start_time: row.started_at,
    ...(finished ? { duration: recordingSeconds(row.duration_ms ?? 0), format: 'wav' } : {}),
    date_created: row.created_at,
    date_updated: row.updated_at,
    uri: `${accountPath(account_sid)}/Recordings/${row.sid}.json`,
  }
}
