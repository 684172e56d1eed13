import type { FormParameters, Method } from '../facts.ts'

/** Commands for the run itself: documents, the state of its leg, timers, notes and the end. */
export type RunCommand = Fetch | Callback | Answer | Reject | Hangup | StartTimer | CancelTimer | Note | Done

/**
 * Requests a document. Answered by `fetched`. The executor decodes the body to text (charset of the header, XML
 * declaration, UTF-8), stops with 11750 after 64 KiB + 1 bytes, and reports failures by their number in
 * voice-compat.md §15. A 2xx without a body succeeds with an empty text. `document` is the reason, for events and
 * metrics.
 */
export interface Fetch {
  readonly type: 'fetch'
  readonly id: string
  readonly document: 'entry' | 'redirect' | 'action' | 'fallback' | 'refer' | 'wait'
  readonly url: string
  readonly method: Method
  readonly parameters: FormParameters
  /** Names of parameters that only the web server may see. Absent when there are none. */
  readonly secret?: readonly string[]
  /** The request waits this long: the documents before it took no time. Absent for no wait. */
  readonly delay_ms?: number
}

/**
 * Sends a request whose response is discarded; no event follows. It may go through the durable outbox. `about` is
 * `action` for the last request of a Record, Dial, Enqueue or Connect after the caller has hung up.
 */
export interface Callback {
  readonly type: 'callback'
  readonly about: 'action' | 'siprec' | 'transcription' | 'stream'
  readonly url: string
  readonly method: Method
  readonly parameters: FormParameters
}

/** Sends 200 OK on this inbound leg. Answered by `answered`, or by `hangup` when answering fails. */
interface Answer {
  readonly type: 'answer'
  readonly id: string
}

/** Rejects this unanswered inbound leg; `status` is the call's final status. Followed by `done`. */
export interface Reject {
  readonly type: 'reject'
  readonly sip_code: number
  readonly status: 'busy' | 'no-answer' | 'failed'
}

/** Sends BYE on this leg. Followed by `done`; needs no event. */
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
 * Adds a note to the call (events, `/v1/calls/{id}`). `warning`: a default was used or an element skipped. `error`: the
 * document or child stopped. `url` is the document's, null for an inline one. The place is null when the fault has
 * none.
 */
interface Note {
  readonly type: 'note'
  readonly level: 'warning' | 'error'
  /** Set when the document cannot go on: its fallback runs, or the run ends. */
  readonly fatal?: true
  readonly number: number
  readonly url: string | null
  readonly line: number | null
  readonly column: number | null
  readonly detail: string
}

/**
 * Ends the run. `hangup`: our script ended the call, after a `hangup` command. `rejected`: after a `reject` command.
 * `gone`: the leg ended during the run. `finished`: a whisper or wait document ended. `leave`: a Leave verb ran in a
 * queue's wait document. `failed`: a whisper or wait document could not be fetched or run. `transferred`: a transfer
 * took the call over.
 */
export interface Done {
  readonly type: 'done'
  readonly outcome: 'hangup' | 'rejected' | 'gone' | 'finished' | 'leave' | 'failed' | 'transferred'
}
