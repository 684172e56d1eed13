import type { DocumentTarget, FormParameters } from '../facts.ts'

/** Commands for child legs and transfers. */
export type ChildCommand =
  | DialChild
  | EndChild
  | RelayEarlyMedia
  | Whisper
  | Bridge
  | TransferChild
  | Refer
  | AnswerRefer

/** The target of a child leg. Numbers are digits with an optional leading +. */
export type ChildTarget =
  | { readonly kind: 'number'; readonly number: string }
  | {
      readonly kind: 'sip'
      /** Sorted by priority (lower first) and weighted among equals; usually one. URIs have no `?headers` part. */
      readonly uris: readonly DialledUri[]
      readonly headers: readonly (readonly [string, string])[]
    }
  | { readonly kind: 'client'; readonly identity: string; readonly parameters: FormParameters }
  /** A voice application of the project, by id. It runs as a separate call on the far side. */
  | { readonly kind: 'application'; readonly id: string; readonly parameters: FormParameters }

export interface DialledUri {
  readonly uri: string
  readonly username: string | null
  readonly password: string | null
  readonly priority: number
  readonly weight: number
}

/** Settings of answering-machine detection on a child. `callback` receives the results. */
export interface MachineDetection {
  readonly mode: 'Enable' | 'DetectMessageEnd'
  readonly timeout_seconds: number
  readonly speech_threshold_ms: number
  readonly speech_end_threshold_ms: number
  readonly silence_timeout_ms: number
  readonly callback: DocumentTarget | null
}

/**
 * Places a child call (parent_call_sid = this call, direction outbound-dial): admission, row, INVITE, status callbacks
 * to `status_callback`. The executor reports any number of `child_progress`, then at most one `child_answered`, and
 * always exactly one `child_ended`, also for a child that is refused before its INVITE. The interpreter enforces the
 * ring timeout.
 */
export interface DialChild {
  readonly type: 'dial_child'
  readonly child: string
  readonly target: ChildTarget
  readonly caller_id: string
  /** `attribute`: the document chose it; `parent`: the From of this call is passed on. Admission checks both. */
  readonly caller_id_source: 'attribute' | 'parent'
  readonly status_callback: (DocumentTarget & { readonly events: readonly string[] }) | null
  readonly machine_detection: MachineDetection | null
}

/**
 * Ends a child in any state (CANCEL or BYE). An unanswered child gets the final status of its cause: `timeout` →
 * no-answer, `lost` (another child answered) and `canceled` → canceled. An answered child ends as `completed`.
 * `child_ended` follows.
 */
export interface EndChild {
  readonly type: 'end_child'
  readonly child: string
  readonly cause: 'timeout' | 'lost' | 'canceled' | 'completed'
}

/** Relays the child's early media to this leg in place of ringback; an unanswered leg gets it with a 183. */
interface RelayEarlyMedia {
  readonly type: 'relay_early_media'
  readonly child: string
}

/**
 * Runs a whisper document on an answered child. The executor calls `start({kind: 'whisper', …})` on the child's leg and
 * reports the outcome of that run in `whisper_ended`.
 */
export interface Whisper extends DocumentTarget {
  readonly type: 'whisper'
  readonly child: string
}

/** Bridges this leg and the child; key presses pass too. Answered by `bridged`. */
interface Bridge {
  readonly type: 'bridge'
  readonly child: string
}

/**
 * Makes the child a call with its own document, because this leg asked for a transfer and leaves. The executor starts
 * a `call` run on the child with this entry and keeps the child when this run ends.
 */
export interface TransferChild extends DocumentTarget {
  readonly type: 'transfer_child'
  readonly child: string
  readonly parameters: FormParameters
}

/** Sends REFER in this leg's dialog. Answered by `refer_accepted` (2xx) and `refer_notified`, then `refer_ended`. */
export interface Refer {
  readonly type: 'refer'
  readonly id: string
  readonly uri: string
  readonly headers: readonly (readonly [string, string])[]
}

/**
 * Answers a `refer_received` of the same `leg`. With 202 the executor takes that leg out of the bridge, sends it NOTIFY
 * with 100 and with the outcome, then BYE. With 603 the bridge continues unchanged.
 */
export interface AnswerRefer {
  readonly type: 'answer_refer'
  readonly leg: 'self' | string
  readonly sip_code: 202 | 603
}
