import type { Reason, ReasonFacts } from '../../core/domain/reasons/index.ts'
import type { FieldError } from './validate.ts'

/** A refused request, as a value. It becomes a problem document, or a numbered error on the voice-calls API. */
export interface Refusal<R extends Reason = Reason> {
  readonly refused: R
  /** Values of the placeholders in the reason's sentence. */
  readonly facts?: ReasonFacts
  /** Replaces the sentence of the table. */
  readonly detail?: string
  readonly errors?: readonly FieldError[]
  readonly headers?: Readonly<Record<string, string>>
  readonly extra?: ProblemExtra
}

/** Optional members of a problem document (spec, "Problem document"). */
interface ProblemExtra {
  readonly available_projects?: readonly { readonly id: string; readonly name: string }[]
  readonly caused_by?: string
  readonly reason?: string
  readonly remediation?: string
  readonly expensive_filter?: string
  readonly changed_resources?: readonly string[]
}

export const refuse = <R extends Reason>(
  refused: R,
  facts: ReasonFacts = {},
  more: Omit<Refusal<R>, 'refused' | 'facts'> = {},
): Refusal<R> => ({ refused, facts, ...more })

export const notFound = (what: string): Refusal<'not_found'> => refuse('not_found', { value: what })

/** Refuses a value that fits the schema but is not acceptable. `pointer` is its JSON pointer in the body. */
export const invalid = (pointer: string, message: string): Refusal<'validation_failed'> =>
  refuse('validation_failed', { value: `${pointer} ${message}` }, { errors: [{ pointer, message }] })

/** Refuses a body with all its faults. */
export function invalidFields(errors: readonly FieldError[]): Refusal<'validation_failed'> {
  const value = errors.slice(0, 5).map(error => `${error.pointer || 'the body'} ${error.message}`)
  return refuse('validation_failed', { value: value.join('; ') }, { errors })
}

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'refused' in value

/** A body that is already serialized as JSON and is sent unchanged. */
export class WrittenJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Thrown inside a transaction to roll it back. The dispatcher answers with the refusal. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.refused)
    this.refusal = refusal
  }
}

/** A change for the audit trail. `before` and `after` are the presented resource. */
export interface Change {
  readonly resource: { readonly type: string; readonly id: string; readonly name: string; readonly href: string | null }
  readonly summary: string
  readonly before: object | null
  readonly after: object | null
  readonly from_revision?: number | null
  readonly to_revision?: number | null
  readonly trunk_id?: string | null
  /** The customer that an operator's write is about: their trail tells it too. */
  readonly customer?: { readonly organization_id: string; readonly project_id: string | null }
  /** A reason or note that a user entered. */
  readonly detail?: string | null
  /** Replaces the action of the route, for a change of another resource than the route's own. */
  readonly action?: string
}
