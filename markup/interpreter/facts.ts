/** HTTP methods of documents and callbacks. */
export type Method = 'GET' | 'POST'

/** An absolute http(s) URL to request. Its fragment is kept: it carries retry options for the executor. */
export interface DocumentTarget {
  readonly url: string
  readonly method: Method
}

/** Form parameters in the order in which they are sent; names as on the wire. */
export type FormParameters = Readonly<Record<string, string>>

/** A place in a document: line and column from 1, of the element's `<` or of the fault. */
export interface Place {
  readonly line: number
  readonly column: number
}

/**
 * The kind of document that a run executes:
 * - `call`: the script of a call, on the call's own leg. Its end hangs up.
 * - `whisper`: a document that only a dialled child hears. Its end means "bridge".
 * - `queue_wait`: what a queued caller hears. It restarts at its end until the executor drops the run.
 * - `conference_wait`: what a lone participant hears. It runs once, then silence (`done` with `finished`).
 */
export type RunKind = 'call' | 'whisper' | 'queue_wait' | 'conference_wait'

/** The source of the first document. `parameters`, such as AnsweredBy, are sent with the request. */
export type Entry =
  | { readonly kind: 'request'; readonly url: string; readonly method: Method; readonly parameters?: FormParameters }
  | { readonly kind: 'inline'; readonly text: string }

/** All the input of a run at its start. The first line of the log holds it. */
export interface StartFacts {
  readonly kind: RunKind
  readonly entry: Entry
  /** Requested with ErrorCode and ErrorUrl when a document cannot be fetched or run (voice-compat.md §7.5). */
  readonly fallback: DocumentTarget | null
  readonly leg: {
    /** False only for an inbound call before its 200 OK; the executor has sent 180. */
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
  /** Names of configured SIP recording servers. When empty, Siprec sends an error callback. */
  readonly siprec_connectors: readonly string[]
}

/** Capabilities of the speech engines. Empty `languages` means "do not check". */
interface SpeechFacts {
  /**
   * Known provider voices, matched case-insensitively; a trailing `*` matches any suffix. `man`, `woman` and `alice`
   * are always known. Empty means "do not check".
   */
  readonly voices: readonly string[]
  /** BCP 47 tags. A primary language covers its regions: `en` covers `en-GB`. */
  readonly languages: readonly string[]
  readonly default_voice: string
  readonly default_language: string
  /** The names of the engines that speak and recognise, as documents may name them; `stt` is null without one. */
  readonly providers?: { readonly tts: string; readonly stt: string | null }
  /** All engines that a document may choose by name. */
  readonly choices?: { readonly tts: readonly string[]; readonly stt: readonly string[] }
  /** Whether a recognizer is configured (speech Gather). */
  readonly recognizer: boolean
  /** Whether a transcriber is configured (Start Transcription, Record transcribe). */
  readonly transcriber: boolean
}
