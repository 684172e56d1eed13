import type { Move, Turn } from '../interpreter/turn.ts'
import type { Event, FormParameters, Method, RunKind } from '../interpreter/types.ts'
import { type AttributeTypes, SCHEMA } from './attributes.ts'
import { type Node, type Shape, shape } from './shape.ts'

/** A verb: its shape, the kinds of document that allow it, and its steps. */
export interface Verb<A extends AttributeTypes = AttributeTypes, S = unknown> extends Shape<A> {
  /** Kinds of documents that may contain the verb. */
  readonly kinds: readonly RunKind[]
  /** Reports whether an unanswered call must be answered before the verb begins. */
  answers(node: Node<A>, turn: Turn): boolean
  begin(node: Node<A>, turn: Turn): Move
  /** Handles an event for the waiting verb; returns undefined when the event does not concern the verb. */
  on?(node: Node<A>, turn: Turn, state: S, event: Event): Move | undefined
  /** Stops what the verb began, because the API replaces the document. */
  cut?(node: Node<A>, turn: Turn, state: S): void
  /** Handles the end of the leg. The verb may stay only to wait for what its last request needs. */
  gone?(node: Node<A>, turn: Turn, state: S): Move
  /** Reports whether the verbs after this one are unreachable (for the static check). */
  ends?(node: Node<A>): boolean
}

/** Default kinds of a verb. Verbs that other kinds of document allow declare their kinds themselves. */
const CALL: readonly RunKind[] = ['call']

type Optional = 'nouns' | 'content' | 'stray' | 'unsupported' | 'kinds' | 'answers'

/** Declares a verb. Defaults: only in call documents, answers first, no text, no nouns, never waits. */
export function verb<const A extends AttributeTypes, S = never>(
  name: string,
  attributes: A,
  steps: Omit<Verb<A, S>, 'name' | 'attributes' | Optional> & Partial<Pick<Verb<A, S>, Optional>>,
): Verb<A, S> {
  return { ...shape(name, attributes), kinds: CALL, answers: () => true, stray: SCHEMA, ...steps }
}

export const stay = (state: unknown): Move => ({ to: 'stay', state })
export const next: Move = { to: 'next' }

/** Requests the document of the `action` attribute with these parameters; without an action, runs the next verb. */
export const toAction = (
  { action, method }: { readonly action: string | null; readonly method: Method },
  parameters: FormParameters,
): Move => (action === null ? next : { to: 'request', document: 'action', url: action, method, parameters })
