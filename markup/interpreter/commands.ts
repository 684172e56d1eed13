import type { FormParameters, Method, Target } from './facts.ts'

export type Command =
  | Fetch
  | Callback
  | Answer
  | Reject
  | Hangup
  | Play
  | StopPlay
  | StartTimer
  | CancelTimer
  | DigitsOn
  | DigitsOff
  | SendDigits
  | Recognize
  | StopRecognize
  | RecordLeg
  | StopRecord
  | DialChild
  | EndChild
  | Ring
  | StopRing
  | RelayEarlyMedia
  | Whisper
  | Bridge
  | TransferChild
  | JoinConference
  | LeaveConference
  | Enqueue
  | LeaveQueue
  | Dequeue
  | StopDequeue
  | Refer
  | AnswerRefer
  | StartStream
  | StopStream
  | StartRecording
  | StopRecording
  | StartSiprec
  | StopSiprec
  | StartTranscription
  | StopTranscription
  | StartEcho
  | Note
  | Done

/**
 * Request a document. Answered by `fetched`. The executor decodes the body to text (charset of the header, XML
 * declaration, UTF-8), stops at 64 KiB + 1 with 11750, and reports failures with their number of voice-compat.md §15.
 * A 2xx without a body is success with an empty text. `document` says why, for events and metrics.
 */
export interface Fetch {
  readonly type: 'fetch'
  readonly id: string
  readonly document: 'entry' | 'redirect' | 'action' | 'fallback' | 'refer' | 'wait'
  readonly url: string
  readonly method: Method
  readonly parameters: FormParameters
}

/**
 * A request whose reply means nothing; no event answers it. It may go through the durable outbox. `about` is
 * `action` for the last request of a Record, Dial, Enqueue or Connect whose caller is gone (its reply is discarded).
 */
export interface Callback {
  readonly type: 'callback'
  readonly about: 'action' | 'siprec' | 'transcription' | 'stream'
  readonly url: string
  readonly method: Method
  readonly parameters: FormParameters
}

/** 200 OK on this leg (an inbound call). Answered by `answered`, or by `hangup` when it could not be. */
export interface Answer {
  readonly type: 'answer'
  readonly id: string
}

/** Final SIP refusal of this unanswered inbound leg; `status` is the call's final status. Followed by `done`. */
export interface Reject {
  readonly type: 'reject'
  readonly sip_code: number
  readonly status: 'busy' | 'no-answer' | 'failed'
}

/** BYE on this leg. Followed by `done`; no event is needed. */
export interface Hangup {
  readonly type: 'hangup'
}

/**
 * Play the items one after another to this leg (to the caller only). Answered by `play_ended` when all are through, by
 * themselves or after `stop_play`. An item that cannot be had is skipped, and named in `failures`.
 */
export interface Play {
  readonly type: 'play'
  readonly id: string
  readonly items: readonly PlayItem[]
}

/**
 * `loop` is 1..1000, already normalised. Text is plain; `ssml` is `<speak>…</speak>`, null when the text has no
 * tags.
 */
export type PlayItem =
  | { readonly kind: 'url'; readonly url: string; readonly loop: number }
  | {
      readonly kind: 'speech'
      readonly text: string
      readonly ssml: string | null
      readonly voice: string
      readonly language: string
      readonly loop: number
    }
  | { readonly kind: 'silence'; readonly ms: number }

export interface StopPlay {
  readonly type: 'stop_play'
  readonly id: string
}

/** Answered by `timer` after `ms`, unless cancelled. */
export interface StartTimer {
  readonly type: 'start_timer'
  readonly id: string
  readonly ms: number
}

export interface CancelTimer {
  readonly type: 'cancel_timer'
  readonly id: string
}

/** From now on each key of this leg's far end is reported by `digit`; before and between, keys are dropped. */
export interface DigitsOn {
  readonly type: 'digits_on'
}

export interface DigitsOff {
  readonly type: 'digits_off'
}

/** DTMF towards the far end of this leg (`self`) or of a child; `0-9 A-D # * w W`. Answered by `digits_sent`. */
export interface SendDigits {
  readonly type: 'send_digits'
  readonly id: string
  readonly leg: 'self' | string
  readonly digits: string
}

/**
 * Recognise what this leg says. Answered by at most one `speech_started`, then one of `speech_result` (an empty text is
 * "nothing heard") and `speech_failed`. Interim results go to `partial` by the executor itself.
 */
export interface Recognize {
  readonly type: 'recognize'
  readonly id: string
  readonly language: string
  readonly hints: readonly string[]
  readonly model: string | null
  readonly enhanced: boolean
  readonly profanity_filter: boolean
  /** Silence that ends an utterance; null: the engine decides (`auto`). */
  readonly speech_timeout_seconds: number | null
  readonly max_speech_seconds: number
  readonly partial: Target | null
}

export interface StopRecognize {
  readonly type: 'stop_recognize'
  readonly id: string
}

/** Where and on which events a recording reports (voice-compat.md §10, "Recording status callback"). */
export interface RecordingCallback extends Target {
  readonly events: readonly string[]
}

/**
 * Record what this leg says (mono): beep, then until silence, a key, the length, `stop_record` or the end of the leg.
 * Answered by `record_ended` when the file is complete. The executor makes the row (source `RecordVerb`), sends the
 * status callbacks, and, with `transcribe` and an engine, the transcription callback.
 */
export interface RecordLeg {
  readonly type: 'record'
  readonly id: string
  readonly beep: boolean
  /** Seconds of silence that end it; 0 is off. */
  readonly silence_seconds: number
  /** Keys that end it; empty is none. */
  readonly finish_on_key: string
  readonly max_seconds: number
  readonly trim: boolean
  readonly callback: RecordingCallback | null
  readonly transcribe: { readonly callback: Target | null } | null
}

/** Ends a `record` at once; what was recorded is kept. */
export interface StopRecord {
  readonly type: 'stop_record'
  readonly id: string
}

/** Whom a child leg calls. Numbers are digits with an optional leading +. */
export type ChildTarget =
  | { readonly kind: 'number'; readonly number: string }
  | {
      readonly kind: 'sip'
      /** By priority (lower first) and weight; usually one. The URI has no `?headers` part. */
      readonly uris: readonly SipUri[]
      readonly headers: readonly (readonly [string, string])[]
    }
  | { readonly kind: 'client'; readonly identity: string; readonly parameters: FormParameters }
  /** A voice application of the project, by its id: runs as a call of its own on the far side. */
  | { readonly kind: 'application'; readonly id: string; readonly parameters: FormParameters }

export interface SipUri {
  readonly uri: string
  readonly username: string | null
  readonly password: string | null
  readonly priority: number
  readonly weight: number
}

/** Answering-machine detection on a child; results go to `callback`. */
export interface MachineDetection {
  readonly mode: 'Enable' | 'DetectMessageEnd'
  readonly timeout_seconds: number
  readonly speech_threshold_ms: number
  readonly speech_end_threshold_ms: number
  readonly silence_timeout_ms: number
  readonly callback: Target | null
}

/**
 * Place a child call (parent_call_sid = this call, direction outbound-dial): admission, row, INVITE, status
 * callbacks to `status_callback`. Answered by any number of `child_progress`, then at most one `child_answered`, and
 * always one `child_ended` at its end (also when refused before any INVITE). The interpreter watches the ring time
 * itself.
 */
export interface DialChild {
  readonly type: 'dial_child'
  readonly child: string
  readonly target: ChildTarget
  readonly caller_id: string
  /** `attribute`: the document chose it; `parent`: the From of this call is passed on. Admission judges both. */
  readonly caller_id_source: 'attribute' | 'parent'
  readonly status_callback: (Target & { readonly events: readonly string[] }) | null
  readonly machine_detection: MachineDetection | null
}

/**
 * End a child whatever its state (CANCEL or BYE). Its final status: `timeout` → no-answer, `lost` (another one
 * answered) and `canceled` → canceled, each only while unanswered; an answered one ends `completed`. `child_ended`
 * follows.
 */
export interface EndChild {
  readonly type: 'end_child'
  readonly child: string
  readonly cause: 'timeout' | 'lost' | 'canceled' | 'completed'
}

/**
 * Answered leg: play ring tone of `country` (null: of the destination's) until `stop_ring`. Unanswered leg: send
 * 180.
 */
export interface Ring {
  readonly type: 'ring'
  readonly country: string | null
}

export interface StopRing {
  readonly type: 'stop_ring'
}

/** Let this leg hear the child's early media in place of ring tone; an unanswered leg gets 183 with it. */
export interface RelayEarlyMedia {
  readonly type: 'relay_early_media'
  readonly child: string
}

/**
 * Run a document on an answered child: the executor calls `start({kind: 'whisper', …})` on the child's leg with the
 * parameters given and, when that run is done, answers `whisper_ended` with its outcome.
 */
export interface Whisper extends Target {
  readonly type: 'whisper'
  readonly child: string
}

/** Join the media of this leg and the child (key presses pass too). Answered by `bridged`. */
export interface Bridge {
  readonly type: 'bridge'
  readonly child: string
}

/**
 * This leg asked for a transfer and leaves; the child stays and becomes a call of its own script: the executor starts a
 * `call` run on the child with this entry, and does not end the child with this run.
 */
export interface TransferChild extends Target {
  readonly type: 'transfer_child'
  readonly child: string
  readonly parameters: FormParameters
}

/**
 * Put this leg into a room. Answered by `conference_joined`, then `conference_left` when it is out again (also when
 * refused). Until the room starts the executor runs `wait` on this leg: a document as its own `conference_wait` run,
 * `default` music, or silence. The room's rules, callbacks and recording are the executor's.
 */
export interface JoinConference {
  readonly type: 'join_conference'
  readonly id: string
  readonly name: string
  readonly muted: boolean
  readonly beep: 'true' | 'false' | 'onEnter' | 'onExit'
  readonly start_on_enter: boolean
  readonly end_on_exit: boolean
  readonly label: string | null
  readonly wait: 'default' | 'silence' | Target
  readonly max_participants: number
  readonly record: boolean
  readonly trim: boolean
  readonly coach: string | null
  readonly jitter_buffer: 'off' | 'small' | 'medium' | 'large'
  readonly status_callback: (Target & { readonly events: readonly string[] }) | null
  readonly recording_callback: RecordingCallback | null
}

export interface LeaveConference {
  readonly type: 'leave_conference'
  readonly id: string
}

/**
 * Put this (answered) leg at the tail of a queue, made on first use. Answered by `queue_left` when it is out. While it
 * waits the executor runs `wait` as a `queue_wait` run on this leg, or hold music. A wait run that is done with `leave`
 * takes it out (`leave`), with `hangup` ends the call. After a bridge to an agent: `bridged`, sent after the bridge.
 */
export interface Enqueue {
  readonly type: 'enqueue'
  readonly id: string
  readonly name: string
  readonly max_size: number | null
  readonly wait: Target | null
}

/** Take this leg out of the queue, or out of the bridge with the agent. */
export interface LeaveQueue {
  readonly type: 'leave_queue'
  readonly id: string
}

/**
 * Take the head caller of a queue and bridge it to this leg; wait for one while the queue is empty. `whisper` runs
 * on the queued caller's leg first (its parameters: QueueSid, CallSid, QueueTime, DequeingCallSid). Answered by
 * `dequeue_bridged`, then `dequeue_ended`; a queue that does not exist: `dequeue_ended` with `error`.
 */
export interface Dequeue {
  readonly type: 'dequeue'
  readonly id: string
  readonly name: string
  readonly whisper: Target | null
}

export interface StopDequeue {
  readonly type: 'stop_dequeue'
  readonly id: string
}

/** REFER in this leg's dialog. Answered by `refer_accepted` (2xx), then `refer_ended`. */
export interface Refer {
  readonly type: 'refer'
  readonly id: string
  readonly uri: string
  readonly headers: readonly (readonly [string, string])[]
}

/**
 * Reply to a `refer_received` of the same `leg`. 202: the executor takes that leg out of the bridge, sends NOTIFY
 * 100 and the outcome, and BYE to it. Else a refusal, and nothing changes.
 */
export interface AnswerRefer {
  readonly type: 'answer_refer'
  readonly leg: 'self' | string
  readonly sip_code: 202 | 603
}

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

export interface StopStream {
  readonly type: 'stop_stream'
  readonly id: string
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

export interface StopRecording {
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

export interface StopSiprec {
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

export interface StopTranscription {
  readonly type: 'stop_transcription'
  readonly id: string
}

/** Send this leg's audio back to it until it ends or the run is done. */
export interface StartEcho {
  readonly type: 'start_echo'
}

/**
 * Keep on the call (events, `/v1/calls/{id}`): `warning` the default was used or an element skipped, `error` the
 * document or child stopped. `url` is the document's, null for an inline one; the place is null when the fault has
 * none.
 */
export interface Note {
  readonly type: 'note'
  readonly level: 'warning' | 'error'
  readonly number: number
  readonly url: string | null
  readonly line: number | null
  readonly column: number | null
  readonly detail: string
}

/**
 * The run is over. `hangup` our script ended the call (`hangup` came before), `rejected` (`reject` came before),
 * `gone` the leg ended under us, `finished` end of a whisper or wait document, `leave` a Leave verb of a queue's
 * wait document, `failed` a whisper or wait document could not be had or run, `transferred` the far end took the
 * call over after Refer.
 */
export interface Done {
  readonly type: 'done'
  readonly outcome: 'hangup' | 'rejected' | 'gone' | 'finished' | 'leave' | 'failed' | 'transferred'
}
