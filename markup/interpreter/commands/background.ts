import type { DocumentTarget, FormParameters } from '../facts.ts'

/** Commands for activities that run concurrently with the document: streams, recordings, transcriptions. */
export type BackgroundCommand =
  | StartStream
  | StopStream
  | StartRelay
  | StopRelay
  | StartRecording
  | StopRecording
  | PauseRecordings
  | ResumeRecordings
  | StartSiprec
  | StopSiprec
  | StartTranscription
  | StopTranscription

/**
 * Starts a media stream to a WebSocket. Connect sets `both_ways`. `stream_ended` reports its end, with a number after a
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
  readonly status_callback: DocumentTarget | null
}

interface StopStream {
  readonly type: 'stop_stream'
  readonly id: string
}

/** The input of the caller that stops what is being said. */
type RelayInput = 'none' | 'dtmf' | 'speech' | 'any'

/**
 * Hands the leg to an application behind a WebSocket, which gets what the caller says as text and answers in text.
 * `relay_ended` reports its end.
 */
export interface StartRelay {
  readonly type: 'start_relay'
  readonly id: string
  readonly url: string
  readonly greeting: string | null
  readonly greeting_interruptible: RelayInput
  /** BCP 47 tags. */
  readonly tts_language: string
  readonly transcription_language: string
  readonly voice: string
  readonly model: string | null
  /** Settings that replace voice and model when the session changes to the language. */
  readonly languages: readonly { readonly code: string; readonly voice: string | null; readonly model: string | null }[]
  readonly interruptible: RelayInput
  readonly sensitivity: 'high' | 'medium' | 'low'
  /** Keys are sent to the application. */
  readonly keys: boolean
  /** The input that is reported although it cannot stop what is being said. */
  readonly report: RelayInput
  readonly preemptible: boolean
  readonly hints: readonly string[]
  readonly profanity_filter: boolean
  /** Steady noise of the caller's line is reduced first. */
  readonly noise_suppression?: boolean
  /** The engines that the document chose; missing: those of the call. */
  readonly stt_engine?: string
  readonly tts_engine?: string
  readonly parameters: FormParameters
}

interface StopRelay {
  readonly type: 'stop_relay'
  readonly id: string
}

/** The URL and events of a recording's status callback (voice-compat.md §10, "Recording status callback"). */
export interface RecordingCallback extends DocumentTarget {
  readonly events: readonly string[]
}

/**
 * Records this leg and its bridge partner in the background. With two channels, channel 1 is this leg and channel 2 is
 * the partner. `child` names the child of a Dial, which may still be ringing; null records whatever is bridged to the
 * leg. `recording_started` reports the sid and the `.wav` URL. After `stop_recording` or the end of the leg,
 * `recording_ended` reports that the file is complete.
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

/**
 * Pauses the recordings of this call that run, whoever began them. `resume_recordings` with the same id resumes those
 * that this command has paused. `by` is for the timeline of the recordings.
 */
interface PauseRecordings {
  readonly type: 'pause_recordings'
  readonly id: string
  readonly behavior: 'skip' | 'silence'
  readonly by: 'document' | 'key'
}

/** Resumes what `pause_recordings` of this id has paused; null resumes every recording of the call. */
interface ResumeRecordings {
  readonly type: 'resume_recordings'
  readonly id: string | null
}

export interface StartSiprec {
  readonly type: 'start_siprec'
  readonly id: string
  readonly name: string | null
  readonly connector: string
  readonly track: 'inbound_track' | 'outbound_track' | 'both_tracks'
  readonly parameters: FormParameters
  readonly status_callback: DocumentTarget | null
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
  readonly model: string | null
  readonly hints: readonly string[]
  readonly profanity_filter: boolean
  readonly punctuation: boolean
  /** The engine that the document chose; missing: that of the call. */
  readonly engine?: string
  readonly status_callback: DocumentTarget | null
}

interface StopTranscription {
  readonly type: 'stop_transcription'
  readonly id: string
}
