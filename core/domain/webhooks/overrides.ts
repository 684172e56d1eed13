import type { FetchError } from './errors.ts'
import { RETRY_POLICY_INVALID } from './errors.ts'

/**
 * Retryable failures: an error status of a class, a failed connection or TLS handshake, a missing or broken response.
 */
const RETRY_CAUSES = ['4xx', '5xx', 'ct', 'rt'] as const
type RetryCause = (typeof RETRY_CAUSES)[number]

/** How a URL is requested. */
export interface RequestPolicy {
  readonly connect_timeout_ms: number
  readonly read_timeout_ms: number
  /** Over all attempts. */
  readonly total_timeout_ms: number
  /** Attempts after the first. */
  readonly retries: number
  readonly retry_on: readonly RetryCause[] | 'all'
  /** Numbers of the warnings about the fragment. */
  readonly warnings: readonly number[]
}

export const DEFAULT_POLICY: RequestPolicy = {
  connect_timeout_ms: 5_000,
  read_timeout_ms: 15_000,
  total_timeout_ms: 15_000,
  retries: 1,
  retry_on: ['ct'],
  warnings: [],
}

/**
 * Parses the overrides in a URL's fragment (without `#`), as in `rc=2&rp=4xx,5xx,ct,rt`: `ct`, `rt` and `tt` in
 * milliseconds, `rc` retries, `rp` what to retry. Clamps values out of range, ignores unknown keys (also `sni` and `e`,
 * because certificates are always checked), and ignores invalid values with a warning. Any other fragment is an anchor.
 */
export function parseOverrides(fragment: string): RequestPolicy {
  const items = fragment.split('&').filter(item => item !== '')
  if (items.some(item => !/^[a-z]{1,8}=[^=]*$/i.test(item))) return DEFAULT_POLICY
  const values = new Map(items.map(item => [item.slice(0, item.indexOf('=')), item.slice(item.indexOf('=') + 1)]))
  const unreadable = [...values].some(([key, value]) => READABLE[key]?.test(value) === false)
  const number = (key: string, least: number, most: number, fallback: number): number => {
    const value = values.get(key)
    if (value === undefined || !READABLE[key]?.test(value)) return fallback
    return Math.min(most, Math.max(least, Number(value)))
  }
  return {
    connect_timeout_ms: number('ct', 100, 10_000, DEFAULT_POLICY.connect_timeout_ms),
    read_timeout_ms: number('rt', 100, 15_000, DEFAULT_POLICY.read_timeout_ms),
    total_timeout_ms: number('tt', 100, 15_000, DEFAULT_POLICY.total_timeout_ms),
    retries: number('rc', 0, 5, DEFAULT_POLICY.retries),
    retry_on: retryOn(values.get('rp')),
    warnings: unreadable ? [RETRY_POLICY_INVALID] : [],
  }
}

const READABLE: Readonly<Record<string, RegExp>> = {
  ct: /^\d{1,9}$/,
  rt: /^\d{1,9}$/,
  tt: /^\d{1,9}$/,
  rc: /^\d{1,9}$/,
  rp: /^(4xx|5xx|ct|rt|all)(,(4xx|5xx|ct|rt|all))*$/,
}

function retryOn(value: string | undefined): RequestPolicy['retry_on'] {
  if (value === undefined || !READABLE['rp']?.test(value)) return DEFAULT_POLICY.retry_on
  const wanted = value.split(',')
  return wanted.includes('all') ? 'all' : RETRY_CAUSES.filter(cause => wanted.includes(cause))
}

/** The outcome of one attempt. */
type AttemptOutcome =
  | { readonly status: number; readonly error: null }
  | { readonly status: null; readonly error: FetchError }

const CONNECT_ERRORS: readonly FetchError[] = [
  'dns',
  'connect_timeout',
  'refused',
  'tls',
  'tls_name',
  'tls_expired',
  'tls_untrusted',
]

/** Returns the kind of a failure. `other` is retried only under `all`; null is never retried. */
function retryCause(outcome: AttemptOutcome): RetryCause | 'other' | null {
  if (outcome.error === null) return outcome.status >= 500 ? '5xx' : outcome.status >= 400 ? '4xx' : null
  if (CONNECT_ERRORS.includes(outcome.error)) return 'ct'
  if (outcome.error === 'read_timeout' || outcome.error === 'network') return 'rt'
  return outcome.error === 'protocol' ? 'other' : null
}

/**
 * Returns the delay in milliseconds before the next attempt, or null for no retry. `failed` counts the attempts so far;
 * `random` is in [0, 1). Connections are retried at once, everything else after 100 ms · 2ⁿ with jitter.
 */
export function retryDelay(
  policy: RequestPolicy,
  outcome: AttemptOutcome,
  failed: number,
  random: number,
): number | null {
  const cause = retryCause(outcome)
  if (cause === null || failed > policy.retries) return null
  if (policy.retry_on !== 'all' && !policy.retry_on.some(wanted => wanted === cause)) return null
  return cause === 'ct' ? 0 : Math.round(100 * 2 ** (failed - 1) * (0.5 + random / 2))
}
