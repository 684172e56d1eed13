import type { DocumentTarget, Entry, FormParameters } from './facts.ts'

export type Event =
  | Fetched
  | { readonly type: 'answered'; readonly id: string }
  | PlayEnded
  | { readonly type: 'timer'; readonly id: string }
  /** A key press of this leg's far end: `0-9 A-D * #`. Sent between `digits_on` and `digits_off`, and in a bridge. */
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
  /** An agent's Dial Queue has bridged this caller. */
  | { readonly type: 'queue_bridged'; readonly id: string }
  | QueueLeft
  | DequeueFound
  | DequeueBridged
  | DequeueEnded
  | { readonly type: 'refer_accepted'; readonly id: string; readonly sip_code: number }
  /** A NOTIFY has told that the transfer goes on: the last sipfrag's status. It may come before `refer_accepted`. */
  | { readonly type: 'refer_notified'; readonly id: string; readonly notify_code: number }
  | ReferEnded
  | ReferReceived
  | StreamEnded
  | RelayEnded
  /** A background activity (recording, siprec, transcription) failed or ended by itself. A `number` becomes a note. */
  | { readonly type: 'activity_ended'; readonly id: string; readonly number: number | null; readonly detail: string }
  /** This leg has ended, for any reason (BYE, CANCEL, API, time limit of the call, media lost). */
  | { readonly type: 'hangup' }
  /** The API replaced the document of this live call: the running verb is cut and the new document runs. */
  | { readonly type: 'update'; readonly entry: Entry; readonly fallback?: DocumentTarget }

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
         * The URL of the current document, and the base for its relative URLs. Without a redirect it is the command's
         * URL byte for byte, with user information and fragment and without the parameters that a GET adds. After a
         * redirect it is the URL that answered. Notes never show user information.
         */
        readonly final_url: string
      }
    | { readonly ok: false; readonly number: number; readonly detail: string }
}

export interface PlayEnded {
  readonly type: 'play_ended'
  readonly id: string
  /** Items (by index) that could not be played: 11200 fetch failed, 13420 unusable content type, 13512 language, … */
  readonly failures: readonly { readonly item: number; readonly number: number; readonly detail: string }[]
}

interface SpeechResult {
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
  /** Null when the recording was discarded; `absent` is the reason (16101 too short, 16102 silent). */
  readonly recording: RecordingFacts | null
  readonly absent: 16101 | 16102 | null
}

/** `initiated`: the INVITE is sent and the call_sid is known. `ringing`: 180. `early_media`: 183 with SDP, or RTP. */
interface ChildProgress {
  readonly type: 'child_progress'
  readonly child: string
  readonly state: 'initiated' | 'ringing' | 'early_media'
  readonly call_sid: string
}

interface ChildAnswered {
  readonly type: 'child_answered'
  readonly child: string
  readonly call_sid: string
}

/**
 * The child has ended for this Dial. A child that the API redirected elsewhere ends as `completed`. `duration_seconds`
 * counts from the answer; null when the child never answered. `headers` are the X- headers of its final response or
 * BYE.
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
  /** The number in voice-compat.md §15 that explains a failure (13224, 13225, 13227, 13254 …), else null. */
  readonly number: number | null
  readonly detail: string | null
}

/** After `finished` the interpreter bridges the child; after `hangup` and `failed` it ends the child. */
interface WhisperEnded {
  readonly type: 'whisper_ended'
  readonly child: string
  readonly outcome: 'finished' | 'hangup' | 'failed'
}

/**
 * `number` is set when the conference refused this leg: 16020 full, 16025 label in use, 13240 coach unknown, 16090 it
 * runs on another machine, which does not let it in.
 */
interface ConferenceLeft {
  readonly type: 'conference_left'
  readonly id: string
  readonly number: number | null
  readonly detail: string | null
}

interface QueueLeft {
  readonly type: 'queue_left'
  readonly id: string
  readonly result: 'bridged' | 'bridging-in-process' | 'hangup' | 'leave' | 'queue-full' | 'error' | 'system-error'
  readonly queue_sid: string | null
  readonly queue_time_seconds: number
}

/** A caller is there, and hears its whisper first. It waits on when this leg leaves before `dequeue_bridged`. */
interface DequeueFound {
  readonly type: 'dequeue_found'
  readonly id: string
}

interface DequeueBridged {
  readonly type: 'dequeue_bridged'
  readonly id: string
  readonly queue_sid: string
  readonly call_sid: string
  readonly queue_time_seconds: number
}

interface DequeueEnded {
  readonly type: 'dequeue_ended'
  readonly id: string
  readonly result: 'bridged' | 'redirected' | 'queue-empty' | 'error'
  /** Duration of the bridge; null when there was none. */
  readonly duration_seconds: number | null
}

/** `sip_code` is the response to REFER, `notify_code` the last sipfrag's status; each is null when none came. */
interface ReferEnded {
  readonly type: 'refer_ended'
  readonly id: string
  readonly sip_code: number | null
  readonly notify_code: number | null
}

/** A bridged leg sent REFER. `target` is its Refer-To as received; `headers` are its X- headers. */
interface ReferReceived {
  readonly type: 'refer_received'
  readonly leg: 'self' | string
  readonly target: string
  readonly headers: FormParameters
}

/** `number` is a 319xx fault, or null after a normal end. */
interface StreamEnded {
  readonly type: 'stream_ended'
  readonly id: string
  readonly number: number | null
  readonly detail: string | null
}

/** `completed`: by the caller or an update. `ended`: by the application, which may hand data to the action. */
export interface RelayEnded {
  readonly type: 'relay_ended'
  readonly id: string
  readonly session_id: string
  readonly status: 'completed' | 'ended' | 'failed'
  readonly duration_seconds: number
  readonly hand_off: string | null
  /** A 641xx fault of a failed session. */
  readonly number: number | null
  readonly detail: string | null
}
