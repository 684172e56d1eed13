import type { Admitted, RefusedCall } from '../../../domain/admission/index.ts'
import { ending } from '../../../domain/calls/endings.ts'
import { type Verstat, verstatText } from '../../../domain/identity/passport.ts'
import { isReason, type Reason, reasonSentence, sipRefusal } from '../../../domain/reasons/index.ts'
import type { AdmissionOutcome, AdmissionRequest, DecisionFacts } from '../admission/request.ts'
import { giveBack, take } from '../admission/take.ts'
import { type Query, textOf, textOrNull } from '../query.ts'
import { finish } from './finish.ts'
import { keptCall } from './kept-call.ts'
import { changeCall, insertCallRow, type NewCall } from './rows.ts'

/** The decision without its trace, which is stored with the call. */
export type Decided = (Omit<Admitted, 'trace'> | Omit<RefusedCall, 'trace'>) &
  Omit<DecisionFacts, 'revisions' | 'price'>

export interface AdmitInput {
  readonly call: NewCall
  /** The row to store when the side of a caller of another tenant refuses: the called tenant must see nothing of it. */
  readonly callers?: NewCall | null
  /** One per side of the call. The first refusal decides. */
  readonly requests: readonly AdmissionRequest[]
  readonly verstat: Verstat | null
  readonly now_ms: number
}

export interface Admission {
  /** Position of the call's row. */
  readonly position: number
  readonly decided: Decided
  /** The side that decided. */
  readonly part: AdmissionRequest['part']
  /** Number of callbacks and events queued. */
  readonly queued: number
}

/** Decides, takes slots and money, and writes the call's row with the decision. A refused call is also ended. */
export function decideNewCall(query: Query, input: AdmitInput): Admission {
  const { requests, verstat, now_ms } = input
  const { outcome, part } = takeAll(query, requests)
  const decision_trace = JSON.stringify(decisionOf(outcome, verstat))
  const call = keptCall(input, { decided: outcome, part })
  const position = insertCallRow(query, { ...call, decision_trace }, now_ms)
  return { position, part, ...settled(query, call.sid, outcome, now_ms) }
}

/** Takes what each side of a call needs, until one refuses. */
function takeAll(query: Query, requests: readonly AdmissionRequest[]) {
  let outcome: AdmissionOutcome | null = null
  let part: AdmissionRequest['part'] = 'inbound'
  for (const request of requests) {
    outcome = take(query, { request, dry_run: false })
    part = request.part
    if (!outcome.admitted) break
  }
  if (!outcome) throw new Error('a call without an admission request')
  return { outcome, part }
}

export interface AdmitQueuedInput {
  /** One per side of the call. The first refusal decides. */
  readonly requests: readonly AdmissionRequest[]
  /** A call of one side that is refused for this reason stays queued, because the condition is temporary. */
  readonly waits_for: Reason | null
  readonly now_ms: number
}

const DECIDED = 'select ended_at, reason from call where sid = ? and decision_trace is not null'

/**
 * Decides on a call that already has a row. A node that gets no answer to the commit asks again (decision 1053): the
 * second decision first gives back what the first one took, and a refused call stays refused.
 */
export function decideQueuedCall(query: Query, { requests, waits_for, now_ms }: AdmitQueuedInput): Settled {
  const call_sid = requests[0]?.call_sid ?? ''
  const decided = query(DECIDED, call_sid)[0]
  if (decided && textOrNull(decided, 'ended_at') !== null)
    return { decided: stillRefused(query, requests, textOf(decided, 'reason')), queued: 0 }
  if (decided) giveBack(query, call_sid, now_ms)
  const { outcome } = takeAll(query, requests)
  if (!outcome.admitted && outcome.reason === waits_for) return { decided: withoutTrace(outcome), queued: 0 }
  const changes = {
    decision_trace: JSON.stringify(decisionOf(outcome, null)),
    updated_at: new Date(now_ms).toISOString(),
  }
  changeCall(query, changes, call_sid)
  return settled(query, call_sid, outcome, now_ms)
}

function stillRefused(query: Query, [request]: readonly AdmissionRequest[], known: string): Decided {
  if (!request) throw new Error('a call without an admission request')
  const reason = isReason(known) ? known : 'internal'
  const facts = withoutTrace(take(query, { request, dry_run: true }))
  return { ...facts, admitted: false, reason, sentence: reasonSentence(reason), facts: {} }
}

type Settled = Pick<Admission, 'decided' | 'queued'>

function settled(query: Query, sid: string, outcome: AdmissionOutcome, now_ms: number): Settled {
  const decided = withoutTrace(outcome)
  if (outcome.admitted) return { decided, queued: 0 }
  const { code } = sipRefusal(outcome.reason, outcome.facts)
  // One side may have been admitted before the other was refused: the end releases what it took.
  const finished = finish(query, sid, {
    ending: ending({ cause: 'not_admitted', answered: false, sip_code: code, reason: outcome.reason }),
    ended_ms: now_ms,
    pdd_ms: null,
    media: null,
  })
  return { decided, queued: finished?.queued ?? 0 }
}

/** Builds the decision that is stored with a call, admitted or not. */
const decisionOf = (outcome: AdmissionOutcome, verstat: Verstat | null): object => ({
  admitted: outcome.admitted,
  ...(outcome.admitted
    ? { max_duration_seconds: outcome.max_duration_seconds }
    : { reason: outcome.reason, sentence: outcome.sentence }),
  checks: outcome.trace,
  revisions: outcome.revisions,
  policy_id: outcome.policy_id,
  price: outcome.price,
  ...(verstat ? { caller_identity: { verstat: verstatText(verstat, true), detail: verstat.detail } } : {}),
})

function withoutTrace(outcome: AdmissionOutcome): Decided {
  const { trace: _trace, revisions: _revisions, price: _price, ...decided } = outcome
  return decided
}
