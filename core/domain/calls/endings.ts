import type { Reason } from '../reasons/index.ts'
import { outcomeOf } from '../routing/outcome.ts'
import { COMPLETED_ELSEWHERE } from '../sip/values.ts'

/**
 * Maps the cause of a call's end to the call's status and the SIP code (design section 4, voice-compat.md section 6).
 */

type FinalStatus = 'completed' | 'busy' | 'no-answer' | 'canceled' | 'failed'
type EndedBy = 'caller' | 'called' | 'platform' | 'api'

/** The cause of the end of a call, or of one of its legs. */
export type Cause =
  | 'caller_hung_up'
  | 'called_hung_up'
  /** A target's final response, `sip_code`. */
  | 'refused'
  /** No target responded: refused connections, DNS failures, timeouts. */
  | 'unreachable'
  | 'ring_timeout'
  | 'api'
  | 'script'
  /** The script refused an unanswered call. */
  | 'rejected'
  /** Refused by admission, or for another reason before any INVITE. */
  | 'not_admitted'
  /** Another child of the same Dial was answered. */
  | 'lost'
  | 'max_duration'
  | 'spend_exhausted'
  | 'media_timeout'
  | 'session_expired'
  | 'no_ack'
  | 'media_unavailable'
  | 'node_lost'
  | 'draining'
  | 'internal'

export interface EndFacts {
  readonly cause: Cause
  readonly answered: boolean
  /** The code that the far end or our refusal gave; null for that of the cause. */
  readonly sip_code?: number | null
  /** Replaces the reason of the cause. */
  readonly reason?: Reason | null
  /** Replaces the status of the cause: by a script's Reject, or the outcome of a hunt. */
  readonly status?: FinalStatus
  /** Further headers of the final response to the caller, such as Warning and Retry-After. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Ending {
  readonly status: FinalStatus
  /** The final response to an unanswered caller, and the `SipResponseCode` of the last callback. */
  readonly sip_code: number
  readonly reason: Reason | null
  readonly ended_by: EndedBy
  /** Value of a Reason header for BYE or CANCEL (RFC 3326); null for none. */
  readonly bye_reason: string | null
}

interface Row {
  readonly status: FinalStatus
  readonly sip_code: number
  readonly reason: Reason | null
  readonly ended_by: EndedBy
  /** Q.850 cause (RFC 6432) of the Reason header. */
  readonly q850: number | null
}

const row = (
  status: FinalStatus,
  sip_code: number,
  reason: Reason | null,
  ended_by: EndedBy,
  q850: number | null,
): Row => ({
  status,
  sip_code,
  reason,
  ended_by,
  q850,
})

/** The endings of unanswered calls. An answered call is `completed` whatever ended it. */
const TABLE: Readonly<Record<Cause, Row>> = {
  caller_hung_up: row('canceled', 487, 'canceled', 'caller', null),
  called_hung_up: row('failed', 480, null, 'called', 16),
  refused: row('failed', 503, null, 'called', null),
  unreachable: row('failed', 503, 'target_unreachable', 'platform', null),
  ring_timeout: row('no-answer', 487, 'no_answer', 'platform', 19),
  api: row('canceled', 487, 'canceled', 'api', 16),
  script: row('failed', 480, null, 'platform', 16),
  rejected: row('no-answer', 603, null, 'platform', 21),
  not_admitted: row('failed', 503, null, 'platform', null),
  lost: row('canceled', 487, 'canceled', 'platform', 26),
  max_duration: row('failed', 480, 'max_duration', 'platform', null),
  spend_exhausted: row('failed', 480, 'spend_exhausted', 'platform', null),
  media_timeout: row('failed', 480, 'media_timeout', 'platform', null),
  session_expired: row('failed', 408, 'session_expired', 'platform', null),
  no_ack: row('failed', 408, 'no_ack', 'platform', null),
  media_unavailable: row('failed', 503, 'media_unavailable', 'platform', null),
  node_lost: row('failed', 503, 'node_lost', 'platform', null),
  draining: row('failed', 503, 'draining', 'platform', null),
  internal: row('failed', 500, 'internal', 'platform', null),
}

export function ending(facts: EndFacts): Ending {
  const own = TABLE[facts.cause]
  const by_answer =
    facts.cause === 'refused' ? outcomeOf({ kind: 'response', code: facts.sip_code ?? own.sip_code }) : null
  const reason = facts.reason !== undefined ? facts.reason : (by_answer?.reason ?? own.reason)
  const { ended_by } = own
  const bye_reason = byeReason(own, reason, facts.cause)
  if (facts.answered) {
    const quiet = facts.cause === 'caller_hung_up' || facts.cause === 'called_hung_up' || facts.cause === 'api'
    return { status: 'completed', sip_code: 200, reason: quiet ? null : reason, ended_by, bye_reason }
  }
  return {
    status: facts.status ?? by_answer?.status ?? own.status,
    sip_code: by_answer?.code ?? facts.sip_code ?? own.sip_code,
    reason,
    ended_by,
    bye_reason,
  }
}

function byeReason(own: Row, reason: Reason | null, cause: Cause): string | null {
  if (own.q850 === null) return reason === null ? null : `X-Strowger;cause=${own.sip_code};text="${reason}"`
  const q850 = `Q.850;cause=${own.q850}`
  return cause === 'lost' ? `${COMPLETED_ELSEWHERE}, ${q850}` : q850
}
