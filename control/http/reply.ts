import type { Reason, ReasonFacts } from '../../core/domain/reasons/index.ts'
import type { FieldError } from './validate.ts'

/** A request that cannot be granted, as a value: becomes a problem document (or a numbered error on the voice API). */
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

/** A value that the schema allows but the world does not: `pointer` says where it stands in the body. */
export const invalid = (pointer: string, message: string): Refusal<'validation_failed'> =>
  refuse('validation_failed', { value: `${pointer} ${message}` }, { errors: [{ pointer, message }] })

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'refused' in value

/** JSON of a body that is written already; it is sent as it is. */
export class WrittenJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Thrown inside a transaction to take back what it did; the dispatcher answers the refusal. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.refused)
    this.refusal = refusal
  }
}

/** What a write did, for the audit trail: `before` and `after` are the resource as it is presented. */
export interface Change {
  readonly resource: { readonly type: string; readonly id: string; readonly name: string; readonly href: string | null }
  readonly summary: string
  readonly before: object | null
  readonly after: object | null
  readonly from_revision?: number | null
  readonly to_revision?: number | null
  readonly trunk_id?: string | null
  /** A reason or note that a person gave. */
  readonly detail?: string | null
  /** In place of the route's own action, for what a write changed besides its own resource. */
  readonly action?: string
}
