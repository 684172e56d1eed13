import type { FormParameters, Target } from '../facts.ts'

/** Commands of what goes on beside the document: streams, recordings, transcriptions. */
export type BackgroundCommand =
  | StartStream
  | StopStream
  | StartRecording
  | StopRecording
  | StartSiprec
  | StopSiprec
  | StartTranscription
  | StopTranscription

/**
 * Media stream to a WebSocket. `both_ways`: Connect. Answered by `stream_ended` at its end, with a number if by
 * fault.
 */
export interface StartStream {
  readonly type: 'start_stream'
  readonly id: string
  readonly name: string | null
  readonly url: string
  readonly track: 'inbound_track' | 'outbound_track' | 'both_tracks'
  readonly both_ways: boolean
  readonly parameters: FormParameters
  readonly status_callback: Target | null
}

interface StopStream {
  readonly type: 'stop_stream'
  readonly id: string
}

/** Where and on which events a recording reports (voice-compat.md §10, "Recording status callback"). */
export interface RecordingCallback extends Target {
  readonly events: readonly string[]
}

/**
 * Record in the background: this leg and what it is joined with (with two channels 1 is this leg, 2 the other side).
 * `child` names the child of a Dial, which may still be ringing; null: whatever the leg is joined with at the time.
 * Answered by `recording_started` (with sid and the `.wav` URL) and `recording_ended` after `stop_recording` or the
 * end of the leg, when the file is complete.
 */
export interface StartRecording {
  readonly type: 'start_recording'
  readonly id: string
  readonly source: 'DialVerb' | 'StartCallRecordingAPI'
  readonly name: string | null
  readonly child: string | null
  readonly channels: 1 | 2
  readonly track: 'inbound' | 'outbound' | 'both'
  readonly trim: boolean
  readonly callback: RecordingCallback | null
}

interface StopRecording {
  readonly type: 'stop_recording'
  readonly id: string
}

export interface StartSiprec {
  readonly type: 'start_siprec'
  readonly id: string
  readonly name: string | null
  readonly connector: string
  readonly track: 'inbound_track' | 'outbound_track' | 'both_tracks'
  readonly parameters: FormParameters
  readonly status_callback: Target | null
}

interface StopSiprec {
  readonly type: 'stop_siprec'
  readonly id: string
}

export interface StartTranscription {
  readonly type: 'start_transcription'
  readonly id: string
  readonly name: string | null
  readonly track: 'inbound_track' | 'outbound_track' | 'both_tracks'
  readonly language: string
  readonly inbound_label: string | null
  readonly outbound_label: string | null
  readonly partial_results: boolean
  readonly engine: string | null
  readonly model: string | null
  readonly hints: readonly string[]
  readonly profanity_filter: boolean
  readonly punctuation: boolean
  readonly status_callback: Target | null
}

interface StopTranscription {
  readonly type: 'stop_transcription'
  readonly id: string
}
