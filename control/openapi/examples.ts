import recorded from './examples.json' with { type: 'json' }
import ofOperators from './operator-examples.json' with { type: 'json' }

/** A request to an endpoint and its answer, with placeholders for ids and times. */
export interface ApiExample {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
  readonly status: number
  /** Absent when the answer has no JSON body. */
  readonly response?: unknown
}

/**
 * An example for each endpoint, by method and path. `npm run examples` records them from a running control plane. A
 * test repeats them, so that no example is out of date.
 */
export const API_EXAMPLES: Readonly<Record<string, ApiExample>> = recorded

/** The same for the operator API. */
export const OPERATOR_EXAMPLES: Readonly<Record<string, ApiExample>> = ofOperators
