import type { Move, Turn } from '../interpreter/turn.ts'
import type { Event, FormParameters, Method, RunKind } from '../interpreter/types.ts'
import { type AttributeTypes, SCHEMA } from './attributes.ts'
import { type Node, type Shape, shape } from './shape.ts'

/** A verb: its shape, where it may stand, and its steps. */
export interface Verb<A extends AttributeTypes = AttributeTypes, S = unknown> extends Shape<A> {
  /** Kinds of documents it may stand in. */
  readonly kinds: readonly RunKind[]
  /** Whether an unanswered call is answered before it begins. */
  answers(node: Node<A>, turn: Turn): boolean
  begin(node: Node<A>, turn: Turn): Move
  /** An event for the waiting verb; undefined when it does not concern it. */
  on?(node: Node<A>, turn: Turn, state: S, event: Event): Move | undefined
  /** The API puts another document on the call: stop what was begun. */
  cut?(node: Node<A>, turn: Turn, state: S): void
  /** The leg is gone: stop, and stay only to wait for what the last request needs. */
  gone?(node: Node<A>, turn: Turn, state: S): Move
  /** Whether the verbs below can never be reached when this one is (for the static check). */
  ends?(node: Node<A>): boolean
}

/** Verb documents of a call may hold everything but Leave; the other kinds are said by the verbs themselves. */
const CALL: readonly RunKind[] = ['call']

type Optional = 'nouns' | 'content' | 'stray' | 'unsupported' | 'kinds' | 'answers'

/** Declare a verb; what is left out is: only in calls, answers first, no text, no nouns, never waits. */
export function verb<const A extends AttributeTypes, S = never>(
  name: string,
  attributes: A,
  steps: Omit<Verb<A, S>, 'name' | 'attributes' | Optional> & Partial<Pick<Verb<A, S>, Optional>>,
): Verb<A, S> {
  return { ...shape(name, attributes), kinds: CALL, answers: () => true, stray: SCHEMA, ...steps }
}

export const stay = (state: unknown): Move => ({ to: 'stay', state })
export const next: Move = { to: 'next' }

/** On to the document of the `action` attribute, asked for with these parameters; without one to the next verb. */
export const toAction = (
  { action, method }: { readonly action: string | null; readonly method: Method },
  parameters: FormParameters,
): Move => (action === null ? next : { to: 'request', document: 'action', url: action, method, parameters })
