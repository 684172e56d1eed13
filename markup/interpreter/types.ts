/**
 * The contract between the pure interpreter and its executor (signaling/scripts).
 *
 * The executor holds one Run per leg that executes markup. It calls `start(facts)` once, then `step(run, event)` for
 * each event, carries out the returned commands in order, and keeps the returned run. A Run, every Command and every
 * Event are plain JSON. Rules that hold for all of them:
 *
 * - Ids are made by the interpreter from a counter (`play-3`). An event names the id of the command it answers. An
 *   event whose id is no longer awaited is ignored by `step`, so the executor may report late and need not filter.
 * - Commands are carried out in the order given and without waiting for one another, except that commands of one run
 *   that touch the same leg keep their order.
 * - Time is an event: `start_timer` asks for `timer`. No other command carries a time limit that the executor must
 *   watch, save what a media worker measures by itself (silence and length of a recording, end of speech).
 * - Parameters in `fetch` and `callback` are only those of the verb. The executor adds the standard set of
 *   voice-compat.md §7.2 for the leg the run is on (for a wait document also the queue's or conference's), signs,
 *   follows redirects, retries by the URL fragment and guards against private addresses.
 * - `done` is the last command of a run. After it the executor ends, for this run, whatever is still going on
 *   (timers, plays, children); activities begun by `start_*` belong to the leg, not to the run, and end with the
 *   leg.
 */

/** HTTP methods of documents and callbacks. */
export type Method = 'GET' | 'POST'

/** A URL to request, absolute, http or https, fragment kept (it carries retry options for the executor). */
export interface Target {
  readonly url: string
  readonly method: Method
}

/** Form parameters in the order they are meant; names as on the wire. */
export type FormParameters = Readonly<Record<string, string>>

/** A place in a document: line from 1, column from 1 (of the `<` of the element or of the fault). */
export interface Place {
  readonly line: number
  readonly column: number
}

// ------------------------------------------------------------------------------------------------------------- facts

/**
 * What a run executes and where it may do what:
 * - `call` the script of a call, on the call's own leg. Its end hangs up.
 * - `whisper` a document heard by a dialled child only. Its end means "bridge".
 * - `queue_wait` what a queued caller hears; begins again at its end until the executor drops the run.
 * - `conference_wait` what a lone participant hears; runs once, then silence (`done` with `finished`).
 */
export type RunKind = 'call' | 'whisper' | 'queue_wait' | 'conference_wait'

/** Where the first document comes from. `parameters` go with the request (AnsweredBy and the like). */
export type Entry =
  | { readonly kind: 'request'; readonly url: string; readonly method: Method; readonly parameters?: FormParameters }
  | { readonly kind: 'inline'; readonly text: string }

/** Everything a run may know at its start; it is the first line of the log. */
export interface StartFacts {
  readonly kind: RunKind
  readonly entry: Entry
  /** Requested with ErrorCode and ErrorUrl when a document cannot be had or run (voice-compat.md §7.5). */
  readonly fallback: Target | null
  readonly leg: {
    /** False only for an inbound call that has had no 200 OK; the executor has sent 180. */
    readonly answered: boolean
    readonly direction: 'inbound' | 'outbound'
    /** Whether REFER can be sent on this leg. */
    readonly sip: boolean
    /** E.164 with +, `sip:` or `client:`; the default caller id of a Dial. */
    readonly from: string
    readonly to: string
  }
  readonly account_sid: string
  readonly call_sid: string
  readonly speech: SpeechFacts
  /** Names of configured SIP recording servers; empty: Siprec answers with an error callback. */
  readonly siprec_connectors: readonly string[]
}

/** What the speech engines can do; an empty `languages` means "do not check". */
export interface SpeechFacts {
  /** Provider voices known, matched without case; `man`, `woman`, `alice` are always known. Empty: do not check. */
  readonly voices: readonly string[]
  /** BCP 47 tags; a tag is also known when its first part is (`en` covers `en-GB`). */
  readonly languages: readonly string[]
  readonly default_voice: string
  readonly default_language: string
  /** Whether a recognizer is configured (speech Gather). */
  readonly recognizer: boolean
  /** Whether a transcriber is configured (Start Transcription, Record transcribe). */
  readonly transcriber: boolean
}

// ---------------------------------------------------------------------------------------------------------- commands

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

// ------------------------------------------------------------------------------------------------------------ events

export type Event =
  | Fetched
  | { readonly type: 'answered'; readonly id: string }
  | PlayEnded
  | { readonly type: 'timer'; readonly id: string }
  /**
   * One key press of this leg's far end: `0-9 A-D * #`. Sent only between `digits_on` and `digits_off`, or in a
   * bridge.
   */
  | { readonly type: 'digit'; readonly digit: string }
  | { readonly type: 'digits_sent'; readonly id: string }
  | { readonly type: 'speech_started'; readonly id: string }
  | SpeechResult
  | { readonly type: 'speech_failed'; readonly id: string; readonly detail: string }
  | RecordEnded
  | { readonly type: 'recording_started'; readonly id: string; readonly sid: string; readonly url: string }
  | { readonly type: 'recording_ended'; readonly id: string; readonly recording: RecordingFacts | null }
  | ChildProgress
  | ChildAnswered
  | ChildEnded
  | WhisperEnded
  | { readonly type: 'bridged'; readonly child: string }
  | { readonly type: 'conference_joined'; readonly id: string; readonly conference_sid: string }
  | ConferenceLeft
  | { readonly type: 'queue_joined'; readonly id: string; readonly queue_sid: string }
  /** An agent's Dial Queue took this caller: the bridge stands. */
  | { readonly type: 'queue_bridged'; readonly id: string }
  | QueueLeft
  | DequeueBridged
  | DequeueEnded
  | { readonly type: 'refer_accepted'; readonly id: string; readonly sip_code: number }
  | ReferEnded
  | ReferReceived
  | StreamEnded
  /**
   * A background activity (recording, siprec, transcription) failed or ended by itself; kept as a note when a
   * number.
   */
  | { readonly type: 'activity_ended'; readonly id: string; readonly number: number | null; readonly detail: string }
  /** This leg has ended, for whatever reason (BYE, CANCEL, API, time limit of the call, media lost). */
  | { readonly type: 'hangup' }
  /** The API put a new document on this live call: the running verb is cut and the document runs. */
  | { readonly type: 'update'; readonly entry: Entry; readonly fallback?: Target | null }

export interface Fetched {
  readonly type: 'fetched'
  readonly id: string
  readonly result:
    | {
        readonly ok: true
        /** The decoded body; empty for `audio/*` (the interpreter plays `final_url`). */
        readonly text: string
        /** Media type without parameters, lower case; empty when the reply had none. */
        readonly content_type: string
        /**
         * After HTTP redirects: the base for relative URLs. With the user information of the request when it was not
         * redirected to another origin, so that relative actions keep their Basic credentials; notes never show it.
         */
        readonly final_url: string
      }
    | { readonly ok: false; readonly number: number; readonly detail: string }
}

export interface PlayEnded {
  readonly type: 'play_ended'
  readonly id: string
  /** Items (by index) that could not be played: 11200 not to be had, 13420 not a usable type, 13512 and the like. */
  readonly failures: readonly { readonly item: number; readonly number: number; readonly detail: string }[]
}

export interface SpeechResult {
  readonly type: 'speech_result'
  readonly id: string
  readonly text: string
  /** 0..1 */
  readonly confidence: number
  readonly language: string | null
}

export interface RecordingFacts {
  readonly sid: string
  /** Our `.wav` URL. */
  readonly url: string
  /** Whole seconds, after trimming. */
  readonly duration_seconds: number
}

export interface RecordEnded {
  readonly type: 'record_ended'
  readonly id: string
  readonly reason: 'silence' | 'key' | 'max_length' | 'hangup' | 'stopped' | 'failed'
  /** The ending key when the reason is `key`. */
  readonly key: string | null
  /** Null: nothing worth keeping was recorded; `absent` says why (16101 too short, 16102 silent). */
  readonly recording: RecordingFacts | null
  readonly absent: 16101 | 16102 | null
}

/** `initiated`: the INVITE leaves (the call_sid is known); `ringing` 180; `early_media` 183 with SDP or RTP. */
export interface ChildProgress {
  readonly type: 'child_progress'
  readonly child: string
  readonly state: 'initiated' | 'ringing' | 'early_media'
  readonly call_sid: string
}

export interface ChildAnswered {
  readonly type: 'child_answered'
  readonly child: string
  readonly call_sid: string
}

/**
 * The child is over for this Dial (also when the API redirected the child away: `completed`). `duration_seconds` is
 * from its answer, null when never answered. `headers` are X- headers of its final response or BYE.
 */
export interface ChildEnded {
  readonly type: 'child_ended'
  readonly child: string
  readonly status: 'completed' | 'busy' | 'no-answer' | 'failed' | 'canceled'
  readonly call_sid: string | null
  readonly duration_seconds: number | null
  readonly sip_code: number | null
  readonly sip_call_id: string | null
  readonly headers: FormParameters
  /** Number of voice-compat.md §15 that explains a failure (13224, 13225, 13227, 13254 …), else null. */
  readonly number: number | null
  readonly detail: string | null
}

/** `finished`: bridge now. `hangup`, `failed`: the child is not wanted; the interpreter ends it. */
export interface WhisperEnded {
  readonly type: 'whisper_ended'
  readonly child: string
  readonly outcome: 'finished' | 'hangup' | 'failed'
}

/** `number` when the room refused this leg: 16020 full, 16025 label in use, 13240 coach unknown. */
export interface ConferenceLeft {
  readonly type: 'conference_left'
  readonly id: string
  readonly number: number | null
  readonly detail: string | null
}

export interface QueueLeft {
  readonly type: 'queue_left'
  readonly id: string
  readonly result: 'bridged' | 'bridging-in-process' | 'hangup' | 'leave' | 'queue-full' | 'error' | 'system-error'
  readonly queue_sid: string | null
  readonly queue_time_seconds: number
}

export interface DequeueBridged {
  readonly type: 'dequeue_bridged'
  readonly id: string
  readonly queue_sid: string
  readonly call_sid: string
  readonly queue_time_seconds: number
}

export interface DequeueEnded {
  readonly type: 'dequeue_ended'
  readonly id: string
  readonly result: 'bridged' | 'redirected' | 'queue-empty' | 'error'
  /** Of the bridge; null when there was none. */
  readonly duration_seconds: number | null
}

/** Codes are null when none came. `sip_code` is of the response to REFER, `notify_code` of the last sipfrag. */
export interface ReferEnded {
  readonly type: 'refer_ended'
  readonly id: string
  readonly sip_code: number | null
  readonly notify_code: number | null
}

/** A bridged leg asks for a transfer. `target` is the Refer-To as received; `headers` its X- headers. */
export interface ReferReceived {
  readonly type: 'refer_received'
  readonly leg: 'self' | string
  readonly target: string
  readonly headers: FormParameters
}

/** `number` 319xx when it ended by a fault, null when it ended well. */
export interface StreamEnded {
  readonly type: 'stream_ended'
  readonly id: string
  readonly number: number | null
  readonly detail: string | null
}

// --------------------------------------------------------------------------------------------------------------- run

/** An element of a document: names, attributes and places as written. Children are elements and runs of text. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, Attribute>>
  readonly children: readonly (Element | string)[]
  readonly line: number
  readonly column: number
}

export interface Attribute {
  readonly value: string
  readonly line: number
  readonly column: number
}

/** The document that runs: its verbs as elements, its own URL after redirects (null: given inline). */
export interface RunningDocument {
  readonly verbs: readonly Element[]
  readonly url: string | null
  /** It is the reply of the fallback URL: when it fails too, there is no further try. */
  readonly fallback: boolean
  /** Inline and put on a live call by the API: a relative action is 15004, else 11100. */
  readonly live: boolean
}

/** A fault of a document: the element is skipped or the default used (`warning`), or the document stops (`error`). */
export interface Fault extends Place {
  readonly number: number
  readonly level: 'warning' | 'error'
  readonly detail: string
}

/** What a run is doing. `verb` has the state of the verb at `index`; its shape is the verb's own and is plain JSON. */
export type Phase =
  | { readonly name: 'fetching'; readonly id: string; readonly document: Fetch['document']; readonly url: string }
  | { readonly name: 'answering'; readonly id: string; readonly index: number }
  | { readonly name: 'verb'; readonly index: number; readonly state: unknown }
  /** The leg is gone; the verb still waits for its recording or its child before its last request. */
  | { readonly name: 'closing'; readonly index: number; readonly state: unknown }
  /** The spoken notice of a failed application. */
  | { readonly name: 'notice'; readonly id: string }
  | { readonly name: 'done' }

/** A begun background activity that Stop may name. */
export interface Activity {
  readonly id: string
  readonly kind: 'Stream' | 'Recording' | 'Siprec' | 'Transcription'
  readonly name: string | null
}

/** State of one run. Plain JSON; made by `start`, changed only by `step`. */
export interface Run {
  readonly facts: StartFacts
  readonly phase: Phase
  readonly document: RunningDocument
  readonly answered: boolean
  /** How an unanswered leg is refused when its script ends after a failed Dial with answerOnBridge; else null. */
  readonly refusal: { readonly sip_code: number; readonly status: Reject['status'] } | null
  readonly fallback: Target | null
  /** Next number for ids. */
  readonly counter: number
  /** All document requests of the run, and those since a verb that takes time; both have a limit (12400). */
  readonly fetches: number
  readonly idle_fetches: number
  readonly activities: readonly Activity[]
  /** Faults already noted (`number line column url`), so that a document fetched again does not repeat them. */
  readonly noted: readonly string[]
}

/**
 * Result of `start` and `step`. `unexpected` names an event that fits nothing the run awaits (late ones do not
 * count).
 */
export interface Step {
  readonly run: Run
  readonly commands: readonly Command[]
  readonly unexpected: string | null
}
