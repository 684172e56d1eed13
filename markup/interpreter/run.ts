import type { Command, Fetch, Reject } from './commands.ts'
import type { DocumentTarget, Place, StartFacts } from './facts.ts'

/** An element of a document, with its name, attributes and places as written. Children are elements and text. */
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

/** The running document: its verbs as elements, and its URL after redirects (null for an inline document). */
export interface RunningDocument {
  readonly verbs: readonly Element[]
  readonly url: string | null
  /** True for the response of the fallback URL: when that document fails too, no other is tried. */
  readonly fallback: boolean
  /** True for an inline document that the API put on a live call: its relative actions are fault 15004, not 11100. */
  readonly live: boolean
}

/** A fault of a document. `warning`: the element is skipped or the default used. `error`: the document stops. */
export interface Fault extends Place {
  readonly number: number
  readonly level: 'warning' | 'error'
  readonly detail: string
}

/** The phase of a run. `verb` holds the state of the verb at `index`: plain JSON, whose shape the verb defines. */
export type Phase =
  | { readonly name: 'fetching'; readonly id: string; readonly document: Fetch['document']; readonly url: string }
  | { readonly name: 'answering'; readonly id: string; readonly index: number }
  | { readonly name: 'verb'; readonly index: number; readonly state: unknown }
  /** The leg has ended; the verb waits for its recording or children before its last request. */
  | { readonly name: 'closing'; readonly index: number; readonly state: unknown }
  /** The spoken notice of a failed application. */
  | { readonly name: 'notice'; readonly id: string }
  | { readonly name: 'done' }

/** A running background activity that Stop may name. */
export interface Activity {
  readonly id: string
  readonly kind: 'Stream' | 'Recording' | 'Siprec' | 'Transcription'
  readonly name: string | null
}

/** State of one run: plain JSON, created by `start` and changed only by `step`. */
export interface Run {
  readonly facts: StartFacts
  readonly phase: Phase
  readonly document: RunningDocument
  readonly answered: boolean
  /** The refusal for an unanswered leg whose script ends after a failed Dial with answerOnBridge; else null. */
  readonly refusal: { readonly sip_code: number; readonly status: Reject['status'] } | null
  readonly fallback: DocumentTarget | null
  /** URLs for which the fallback was requested since the last verb that takes time, and its own; '' of inline text. */
  readonly failed: readonly string[]
  /** The number of the next id. */
  readonly counter: number
  /** Document requests of the whole run, and since the last verb that takes time. Both have a limit (12400). */
  readonly fetches: number
  readonly idle_fetches: number
  readonly activities: readonly Activity[]
  /** Faults already noted (`number line column url`): fetching a document again does not repeat its notes. */
  readonly noted: readonly string[]
}

/** Result of `start` and `step`. `unexpected` describes an event with an id that the run never gave out. */
export interface StepResult {
  readonly run: Run
  readonly commands: readonly Command[]
  readonly unexpected: string | null
  /** True when the event's key was a command that ended a Gather or a Dial, and so is not part of the input. */
  readonly key_obeyed: boolean
}
