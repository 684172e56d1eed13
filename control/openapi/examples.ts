import recorded from './examples.json' with { type: 'json' }

/** A request to an endpoint and what it answered, with ids and times that stand for real ones. */
export interface ApiExample {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
  readonly status: number
  /** Absent when the answer has no JSON body. */
  readonly response?: unknown
}

/**
 * An example for each endpoint, by method and path. They are recorded from a running control plane
 * (`npm run examples`) and repeated by a test, so that none tells of an API that was.
 */
export const API_EXAMPLES: Readonly<Record<string, ApiExample>> = recorded
