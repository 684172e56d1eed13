/** How an attempt at one target ended without being answered. */
export type AttemptFailure =
  | { readonly kind: 'response'; readonly code: number }
  /** Nothing came back within Timer B (5 s for a target). */
  | { readonly kind: 'no_response' }
  /** DNS, TCP or TLS failed. */
  | { readonly kind: 'transport' }
  /** Where it leads nothing may be sent (design section 10, "Ways out"). */
  | { readonly kind: 'not_allowed' }

/**
 * Whether the next target is tried (design section 4): on no response, 408, 430, 5xx and transport failure; never on
 * 6xx, 486, 404, or once a 18x with media was passed back, because then the caller has heard this one.
 */
export function mayFailOver(failure: AttemptFailure, mediaPassed: boolean): boolean {
  if (mediaPassed) return false
  if (failure.kind !== 'response') return true
  return failure.code === 408 || failure.code === 430 || (failure.code >= 500 && failure.code <= 599)
}

/** Whether the target's next address is tried (RFC 3263 §4.3): this one could not be asked, or cannot serve now. */
export const triesNextAddress = (failure: AttemptFailure): boolean =>
  failure.kind === 'no_response' ||
  failure.kind === 'transport' ||
  (failure.kind === 'response' && failure.code === 503)

type UnansweredStatus = 'busy' | 'no-answer' | 'canceled' | 'failed'

/** Why we gave up ourselves, when it was not the far end's answer. */
type GivenUp = 'ring_timeout' | 'canceled' | null

/** Call status of a final SIP response to our INVITE (voice-compat section 6; 603 is a person who declines: busy). */
export function statusOf(code: number, givenUp: GivenUp = null): UnansweredStatus | 'completed' {
  if (code >= 200 && code < 300) return 'completed'
  if (givenUp === 'canceled') return 'canceled'
  if (givenUp === 'ring_timeout') return 'no-answer'
  switch (code) {
    case 486:
    case 600:
    case 603:
      return 'busy'
    case 408:
    case 480:
      return 'no-answer'
    default:
      return 'failed'
  }
}

export interface AttemptOutcome {
  readonly status: UnansweredStatus
  /** The code that the A leg gets and that callbacks tell. */
  readonly code: number
  readonly reason:
    | 'peer_busy'
    | 'no_answer'
    | 'peer_rejected'
    | 'peer_failed'
    | 'target_unreachable'
    | 'target_not_allowed'
    | 'canceled'
}

/** Outcome of a call whose last attempt failed. Silence on every target is 408, unreachable targets are 503. */
export function outcomeOf(failure: AttemptFailure, givenUp: GivenUp = null): AttemptOutcome {
  if (givenUp === 'canceled') return { status: 'canceled', code: 487, reason: 'canceled' }
  if (givenUp === 'ring_timeout') return { status: 'no-answer', code: 487, reason: 'no_answer' }
  if (failure.kind === 'transport') return { status: 'failed', code: 503, reason: 'target_unreachable' }
  if (failure.kind === 'not_allowed') return { status: 'failed', code: 403, reason: 'target_not_allowed' }
  if (failure.kind === 'no_response') return { status: 'failed', code: 408, reason: 'target_unreachable' }
  // A redirect that is not followed is no answer that a caller could use (voice-compat 32219), nor is a challenge
  // that is not its own to answer (RFC 3261 §21.4.2).
  const code = failure.code < 400 ? 480 : failure.code === 401 || failure.code === 407 ? 403 : failure.code
  const status = failure.code < 400 ? 'failed' : statusOf(code)
  if (status === 'busy') return { status, code, reason: 'peer_busy' }
  if (status === 'no-answer') return { status, code, reason: 'no_answer' }
  return { status: 'failed', code, reason: code >= 500 && code < 600 ? 'peer_failed' : 'peer_rejected' }
}
