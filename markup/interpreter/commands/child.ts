import type { FormParameters, Target } from '../facts.ts'

/** Commands of legs that this one calls, and of transfers. */
export type ChildCommand =
  | DialChild
  | EndChild
  | RelayEarlyMedia
  | Whisper
  | Bridge
  | TransferChild
  | Refer
  | AnswerRefer

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

/** Let this leg hear the child's early media in place of ring tone; an unanswered leg gets 183 with it. */
interface RelayEarlyMedia {
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
interface Bridge {
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
