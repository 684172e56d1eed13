import type { FormParameters, Method } from '../facts.ts'

/** Commands of a run itself: its documents, its leg, its time, its end. */
export type RunCommand = Fetch | Callback | Answer | Reject | Hangup | StartTimer | CancelTimer | Note | Done

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
  /** Names of parameters that nobody but the far end may see. Absent: there are none. */
  readonly secret?: readonly string[]
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
interface Answer {
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
interface Hangup {
  readonly type: 'hangup'
}

/** Answered by `timer` after `ms`, unless cancelled. */
export interface StartTimer {
  readonly type: 'start_timer'
  readonly id: string
  readonly ms: number
}

interface CancelTimer {
  readonly type: 'cancel_timer'
  readonly id: string
}

/**
 * Keep on the call (events, `/v1/calls/{id}`): `warning` the default was used or an element skipped, `error` the
 * document or child stopped. `url` is the document's, null for an inline one; the place is null when the fault has
 * none.
 */
interface Note {
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
