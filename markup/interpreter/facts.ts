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
interface SpeechFacts {
  /**
   * Provider voices known, matched without case, `*` at the end is any rest; `man`, `woman`, `alice` are always known.
   * Empty: do not check.
   */
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
