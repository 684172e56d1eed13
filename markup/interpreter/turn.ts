import type {
  Activity,
  Callback,
  Command,
  Done,
  Fetch,
  FormParameters,
  Method,
  Place,
  Run,
  RunningDocument,
} from './types.ts'

/** What follows a step of a verb. The state of a verb is plain JSON. */
export type Move =
  /** Waits for events with this state. */
  | { readonly to: 'stay'; readonly state: unknown }
  /** Ends the verb; the next one runs. */
  | { readonly to: 'next' }
  /** Replaces the document with the response of this request. A null url is the current document's. */
  | {
      readonly to: 'request'
      readonly document: Fetch['document']
      readonly url: string | null
      readonly method: Method
      readonly parameters: FormParameters
      readonly secret?: readonly string[]
    }
  /** Ends the call. An unanswered call without a refusal is answered first. */
  | { readonly to: 'hangup' }
  /** Ends the run, after the commands that end the leg. */
  | { readonly to: 'done'; readonly outcome: Done['outcome'] }

const MAX_NOTED = 200

/** Collects the commands and state changes of one step. A turn never outlives its step. */
export class Turn {
  readonly commands: Command[] = []
  readonly facts: Run['facts']
  document: RunningDocument
  answered: boolean
  refusal: Run['refusal']
  fallback: Run['fallback']
  failed: Run['failed']
  fetches: number
  idle_fetches: number
  activities: readonly Activity[]
  private counter: number
  private noted: readonly string[]
  /** Whether this step's key was a command, and so is not part of the input. */
  key_obeyed = false
  /** Place of the running verb, for notes. */
  place: Place | null = null

  constructor(run: Run) {
    this.facts = run.facts
    this.document = run.document
    this.answered = run.answered
    this.refusal = run.refusal
    this.fallback = run.fallback
    this.failed = run.failed
    this.counter = run.counter
    this.fetches = run.fetches
    this.idle_fetches = run.idle_fetches
    this.activities = run.activities
    this.noted = run.noted
  }

  id(prefix: string): string {
    return `${prefix}-${this.counter++}`
  }

  emit(...commands: readonly Command[]): void {
    this.commands.push(...commands)
  }

  /** Notes a fault on the call. A run notes the same warning of the same document only once. */
  note(level: 'warning' | 'error', number: number, detail: string, place: Place | null = this.place): void {
    const url = this.document.url === null ? null : withoutUser(this.document.url)
    const { line, column } = place ?? { line: null, column: null }
    const key = `${number} ${line} ${column} ${url}`
    if (level === 'warning' && (this.noted.includes(key) || this.noted.length >= MAX_NOTED)) return
    if (!this.noted.includes(key) && this.noted.length < MAX_NOTED) this.noted = [...this.noted, key]
    this.emit({ type: 'note', level, number, url, line, column, detail })
  }

  warn(number: number, detail: string, place: Place | null = this.place): void {
    this.note('warning', number, detail, place)
  }

  /**
   * Resolves a URL of the running document. Returns undefined for a relative URL in a document without a base, and for
   * a URL that cannot be requested. An absolute URL stays as written, because request signatures cover what was
   * written.
   */
  resolve(url: string): string | undefined {
    return resolveUrl(url, this.document.url)
  }

  /** Returns the target of an optional callback. An unusable URL causes a warning with `number`. */
  target(url: string | null, method: Method, number: number): { url: string; method: Method } | null {
    if (url === null) return null
    const absolute = this.resolve(url)
    if (absolute === undefined) this.warn(number, `"${url.slice(0, 80)}" is relative and the document has no base`)
    return absolute === undefined ? null : { url: absolute, method }
  }

  /** Sends the last request for a caller who has hung up; its response is discarded. */
  farewell(url: string | null, method: Method, parameters: FormParameters): void {
    const farewell = this.farewellOf(url, method, parameters)
    if (farewell) this.emit(farewell)
  }

  /** Returns that request for a command that sends it later. */
  farewellOf(url: string | null, method: Method, parameters: FormParameters): Callback | null {
    const absolute = url === null ? undefined : this.resolve(url)
    return absolute ? { type: 'callback', about: 'action', url: absolute, method, parameters } : null
  }

  finish(phase: Run['phase']): Run {
    return {
      facts: this.facts,
      phase,
      document: this.document,
      answered: this.answered,
      refusal: this.refusal,
      fallback: this.fallback,
      failed: this.failed,
      counter: this.counter,
      fetches: this.fetches,
      idle_fetches: this.idle_fetches,
      activities: this.activities,
      noted: this.noted,
    }
  }
}

export function resolveUrl(url: string, base: string | null): string | undefined {
  const written = url.trim()
  if (/^https?:\/\//i.test(written)) return canParse(written) ? written : undefined
  if (base === null) return undefined
  try {
    const { protocol, href } = new URL(written, base)
    return protocol === 'http:' || protocol === 'https:' ? href : undefined
  } catch {
    return undefined
  }
}

function canParse(url: string): boolean {
  try {
    return new URL(url).hostname !== ''
  } catch {
    return false
  }
}

/** Returns the URL without user name and password. */
export function withoutUser(url: string): string {
  return url.replace(/^(https?:\/\/)[^/?#@]*@/i, '$1')
}
