import type { ConsoleSession } from './api-types.ts'

/** The part of a board's time that it shows at first. */
export const FIRST_WINDOW = '24h'
export const METRICS = '/v1/metrics?window=1h'
export const LIVE_CALLS = '/v1/live-calls'
/** Rows of the list of calls at first: they fill a high screen, and come soon. */
export const FIRST_CALLS = 50

interface FirstReads {
  readonly scope: ConsoleSession['member']['scopes'][number]
  readonly paths: readonly string[]
}

/**
 * What a page reads before it is drawn, by its path; an address with a query may read something else. The control plane
 * names these reads with the page, so that the browser asks while it still loads the scripts.
 */
export const FIRST_READS: Readonly<Record<string, FirstReads>> = {
  '/': {
    scope: 'live_calls:read',
    paths: [`/v1/metrics/series?window=${FIRST_WINDOW}`, METRICS, LIVE_CALLS],
  },
  '/calls': { scope: 'call_history:read', paths: [`/v1/calls?limit=${FIRST_CALLS}`] },
}
