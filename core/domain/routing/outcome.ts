/** Why an attempt at one target was not answered. */
export type AttemptFailure =
  | { readonly kind: 'response'; readonly code: number }
  /** No response arrived before Timer B fired (5 s for a target). */
  | { readonly kind: 'no_response' }
  /** DNS, TCP or TLS failed. */
  | { readonly kind: 'transport' }
  /** The target's address is one to which we must not send (design section 10, "Ways out"). */
  | { readonly kind: 'not_allowed' }

/**
 * Reports whether to try the next target (design section 4): on no response, 408, 430, 5xx and transport failure. Other
 * answers, such as 6xx, 486 and 404, end the hunt. So does a relayed 18x with media, because the caller has already
 * heard this target.
 */
export function mayFailOver(failure: AttemptFailure, mediaPassed: boolean): boolean {
  if (mediaPassed) return false
  if (failure.kind !== 'response') return true
  return failure.code === 408 || failure.code === 430 || (failure.code >= 500 && failure.code <= 599)
}

/** Reports whether to try the target's next address (RFC 3263 §4.3): this one is unreachable or answered 503. */
export const triesNextAddress = (failure: AttemptFailure): boolean =>
  failure.kind === 'no_response' ||
  failure.kind === 'transport' ||
  (failure.kind === 'response' && failure.code === 503)

type UnansweredStatus = 'busy' | 'no-answer' | 'canceled' | 'failed'

/** Why we ended the attempt ourselves; null when the far end's answer ended it. */
type GivenUp = 'ring_timeout' | 'canceled' | null

/**
 * Maps a final SIP response to our INVITE to a call status (voice-compat section 6). 603 counts as busy, because it
 * means that a person declined.
 */
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
  /** The status code that the A leg receives and callbacks report. */
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

/** Returns the outcome of a call whose last attempt failed: 408 for no response, 503 for a transport failure. */
export function outcomeOf(failure: AttemptFailure, givenUp: GivenUp = null): AttemptOutcome {
  if (givenUp === 'canceled') return { status: 'canceled', code: 487, reason: 'canceled' }
  if (givenUp === 'ring_timeout') return { status: 'no-answer', code: 487, reason: 'no_answer' }
  if (failure.kind === 'transport') return { status: 'failed', code: 503, reason: 'target_unreachable' }
  if (failure.kind === 'not_allowed') return { status: 'failed', code: 403, reason: 'target_not_allowed' }
  if (failure.kind === 'no_response') return { status: 'failed', code: 408, reason: 'target_unreachable' }
  // The caller cannot use a redirect that we do not follow (voice-compat 32219), nor answer a challenge that is meant
  // for us (RFC 3261 §21.4.2).
  const code = failure.code < 400 ? 480 : failure.code === 401 || failure.code === 407 ? 403 : failure.code
  const status = failure.code < 400 ? 'failed' : statusOf(code)
  if (status === 'busy') return { status, code, reason: 'peer_busy' }
  if (status === 'no-answer') return { status, code, reason: 'no_answer' }
  return { status: 'failed', code, reason: code >= 500 && code < 600 ? 'peer_failed' : 'peer_rejected' }
}
