import type { Generated } from 'kysely'
import type { Flag, Instant, JsonText } from './configuration.ts'

export type CallStatus =
  | 'queued'
  | 'ringing'
  | 'in-progress'
  | 'completed'
  | 'busy'
  | 'no-answer'
  | 'canceled'
  | 'failed'

export const FINAL_STATUSES: readonly CallStatus[] = ['completed', 'busy', 'no-answer', 'canceled', 'failed']

/** A call: its current state, or its final one once `ended_at` is set. */
export interface CallTable {
  sid: string
  /** Ascends with creation. The stable sort key of lists. */
  position: Generated<number>
  project_id: string
  account_sid: string | null
  parent_call_sid: string | null
  /** How the call reached the platform (design section 4). */
  origin: 'carrier' | 'trunk' | 'client' | 'rest' | 'dial' | 'test'
  direction: 'inbound' | 'outbound-api' | 'outbound-dial' | 'outbound'
  from_number: string
  to_number: string
  status: CallStatus
  trunk_id: string | null
  carrier_id: string | null
  number_id: string | null
  application_id: string | null
  sip_call_id: string | null
  /** Address that the INVITE came from; null for calls that we place, and where the caller's leg is hidden. */
  source_ip: string | null
  /** 1: the caller is another tenant's peer, whose leg is hidden (docs/calls.md). */
  foreign_caller: Flag | null
  /** JSON of the REST create request (urls, markup, callbacks, time limits); no secrets. */
  request: JsonText | null
  /** Signaling node that runs the call; null until a node takes it. */
  node_id: string | null
  queued_at: Instant
  initiated_at: Instant | null
  ringing_at: Instant | null
  answered_at: Instant | null
  ended_at: Instant | null
  /** Whole seconds from answer to end, rounded down; null until ended. */
  duration_seconds: number | null
  /** As in the record; null too for calls of before this column. */
  pdd_ms: number | null
  sip_code: number | null
  /** Reason code of core/domain/reasons unless a party ended the call normally. */
  reason: string | null
  ended_by: 'caller' | 'called' | 'platform' | 'api' | null
  /** JSON: the admission decision, check by check. */
  decision_trace: JsonText | null
  updated_at: Instant
}

/** The final record of a call, written once, in the transaction that ends the call. */
export interface CdrTable {
  call_sid: string
  project_id: string
  trunk_id: string | null
  carrier_id: string | null
  origin: CallTable['origin']
  direction: CallTable['direction']
  from_number: string
  to_number: string
  status: CallStatus
  sip_code: number | null
  reason: string | null
  ended_by: CallTable['ended_by']
  started_at: Instant
  answered_at: Instant | null
  ended_at: Instant
  duration_seconds: number
  /** Time from the INVITE to the first 18x or 200; null without an INVITE or such a response. */
  pdd_ms: number | null
  /** JSON: codecs of both legs, relay or transcode, packets, loss, jitter, MOS per leg. */
  media: JsonText | null
}

/** One attempt at one target. */
export interface CallAttemptTable {
  id: Generated<number>
  call_sid: string
  sequence: number
  target: string
  /** Call-ID of its INVITE; null when none was sent. */
  sip_call_id: string | null
  address: string | null
  transport: string
  /** The carrier of the target; null for a trunk's target. */
  carrier_id: Generated<string | null>
  started_at: Instant
  provisional_at: Instant | null
  ended_at: Instant | null
  sip_code: number | null
  result: 'answered' | 'refused' | 'failed' | 'canceled' | 'no_answer' | null
  reason: string | null
}

/** Events of a call for humans: warnings, errors, HTTP exchanges, script steps. */
export interface CallEventTable {
  id: Generated<number>
  call_sid: string
  at: Instant
  kind: 'http' | 'warning' | 'error' | 'state' | 'script'
  /** Error or warning number of the compatible API, if any. */
  number: number | null
  detail: JsonText
}

/** Commands of the API to the signaling node that runs (or will run) a call; executed in order of id. */
export interface CallCommandTable {
  id: Generated<number>
  call_sid: string
  kind: 'originate' | 'redirect' | 'hangup' | 'cancel' | 'conference' | 'dequeue' | 'recording' | 'activity'
  payload: JsonText
  created_at: Instant
  taken_by: string | null
  done_at: Instant | null
  outcome: string | null
}

export interface RecordingTable {
  sid: string
  call_sid: string
  project_id: string
  source: string
  channels: number
  track: 'both' | 'inbound' | 'outbound'
  status: 'in-progress' | 'paused' | 'stopped' | 'processing' | 'completed' | 'absent' | 'deleted'
  /** Path below the data folder of `machine_id`, or the key in the object store; empty: removed. */
  file: string
  /** The machine whose data folder has the file; empty for a recording of before there were several. */
  machine_id: Generated<string>
  started_at: Instant
  duration_ms: number | null
  bytes: number | null
  sha256: string | null
  /** Reason number of an absent recording (16101 too short, 16102 silent). */
  error_number: number | null
  /** When it is deleted; null until the storage task sets it. */
  expires_at: Instant | null
  /** The conference whose mix it holds. */
  conference_sid: Generated<string | null>
  /** JSON: the pauses of the recording (core/domain/calls/recording-pauses.ts). */
  pauses: Generated<JsonText | null>
  created_at: Instant
  updated_at: Instant
}

/** Callbacks to deliver at least once, in order of id per `ordering_key`. */
export interface OutboxTable {
  id: Generated<number>
  ordering_key: string
  project_id: string
  kind: 'status_callback' | 'recording_callback'
  call_sid: string | null
  url: string
  method: 'GET' | 'POST'
  parameters: JsonText
  /** Identical for all attempts, so that a receiver can detect duplicates. */
  event_id: string
  attempts: number
  next_attempt_at: Instant
  lease_until: Instant | null
  /** Name of the process that delivers it (core/runtime/machine.ts). */
  lease_by: Generated<string | null>
  delivered: Flag
  given_up: Flag
  last_status: number | null
  last_error: string | null
  created_at: Instant
}
