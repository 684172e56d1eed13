import type { Activity, Command, Done, Fetch, FormParameters, Method, Place, Run, RunningDocument } from './types.ts'

/** What a verb wants next. Its state is plain JSON. */
export type Move =
  /** Wait for events with this state. */
  | { readonly to: 'stay'; readonly state: unknown }
  /** The verb is over; the next one runs. */
  | { readonly to: 'next' }
  /** Another document takes over. A null url is the current document's own. */
  | {
      readonly to: 'request'
      readonly document: Fetch['document']
      readonly url: string | null
      readonly method: Method
      readonly parameters: FormParameters
      readonly secret?: readonly string[]
    }
  /** End the call, answering first when it is unanswered and nothing refuses it. */
  | { readonly to: 'hangup' }
  /** The run is over; commands that end the leg have been given. */
  | { readonly to: 'done'; readonly outcome: Done['outcome'] }

const MAX_NOTED = 200

/** One step in the making: collects commands and the changes to the run. It never outlives the step. */
export class Turn {
  readonly commands: Command[] = []
  readonly facts: Run['facts']
  document: RunningDocument
  answered: boolean
  refusal: Run['refusal']
  fallback: Run['fallback']
  fetches: number
  idle_fetches: number
  activities: readonly Activity[]
  private counter: number
  private noted: readonly string[]
  /** Whether the key of this step was obeyed, and so is no part of what a person enters. */
  key_obeyed = false
  /** Where the running verb stands, for notes. */
  place: Place | null = null

  constructor(run: Run) {
    this.facts = run.facts
    this.document = run.document
    this.answered = run.answered
    this.refusal = run.refusal
    this.fallback = run.fallback
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

  /** Keep a fault on the call; the same one of the same document only once in a run. */
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
   * A URL of the running document made absolute; undefined when it is relative and the document has no base, or has a
   * form that cannot be requested. An absolute one is kept as it was written: signatures are over what was written.
   */
  resolve(url: string): string | undefined {
    return resolveUrl(url, this.document.url)
  }

  /** Target of an optional callback; an unusable URL is warned about with `number`. */
  target(url: string | null, method: Method, number: number): { url: string; method: Method } | null {
    if (url === null) return null
    const absolute = this.resolve(url)
    if (absolute === undefined) this.warn(number, `"${url.slice(0, 80)}" is relative and the document has no base`)
    return absolute === undefined ? null : { url: absolute, method }
  }

  /** A last request whose reply is discarded, for a caller who is gone. */
  farewell(url: string | null, method: Method, parameters: FormParameters): void {
    const absolute = url === null ? undefined : this.resolve(url)
    if (absolute) this.emit({ type: 'callback', about: 'action', url: absolute, method, parameters })
  }

  finish(phase: Run['phase']): Run {
    return {
      facts: this.facts,
      phase,
      document: this.document,
      answered: this.answered,
      refusal: this.refusal,
      fallback: this.fallback,
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

/** The same URL without user name and password. */
export function withoutUser(url: string): string {
  return url.replace(/^(https?:\/\/)[^/?#@]*@/i, '$1')
}
