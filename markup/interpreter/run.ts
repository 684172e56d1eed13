import type { Command, Fetch, Reject } from './commands.ts'
import type { Place, StartFacts, Target } from './facts.ts'

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
  /** The key of the event was obeyed (it ended a Gather or a Dial): no part of what a person enters. */
  readonly key_obeyed: boolean
}
