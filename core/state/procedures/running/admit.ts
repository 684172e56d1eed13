import type { Admitted, Refused } from '../../../domain/admission/index.ts'
import { ending } from '../../../domain/calls/endings.ts'
import { type Verstat, verstatText } from '../../../domain/identity/passport.ts'
import { type Reason, sipRefusal } from '../../../domain/reasons/index.ts'
import type { AdmissionContext, AdmissionOutcome, AdmissionRequest } from '../admission/request.ts'
import type { Query } from '../admission/steps.ts'
import { take } from '../admission/take.ts'
import { ceilings } from '../ceilings/index.ts'
import { finish } from './finish.ts'
import { changeCall, insertCall, type NewCall } from './rows.ts'

/** What was decided, without how: that is kept with the call. */
export type Decided = (Omit<Admitted, 'trace'> | Omit<Refused, 'trace'>) & Omit<AdmissionContext, 'revisions' | 'price'>

export interface AdmitInput {
  readonly call: NewCall
  /** What is kept instead when the caller's side refuses that is another tenant's: who was called hears of nothing. */
  readonly callers?: NewCall | null
  /** One for each side of the call: the first that refuses decides. */
  readonly requests: readonly AdmissionRequest[]
  readonly verstat: Verstat | null
  readonly now_ms: number
}

export interface Admission {
  /** Of the call's row. */
  readonly position: number
  readonly decided: Decided
  /** Of the side that decided. */
  readonly part: AdmissionRequest['part']
  /** Callbacks and events that were queued. */
  readonly told: number
}

/** Decides, takes what is admitted, and writes the call's row with its decision: refused, it has ended with it. */
export function admitCall(query: Query, input: AdmitInput): Admission {
  const { requests, verstat, now_ms } = input
  let outcome: AdmissionOutcome | null = null
  let part: AdmissionRequest['part'] = 'inbound'
  for (const request of requests) {
    outcome = take(query, { request, dry_run: false })
    part = request.part
    if (!outcome.admitted) break
  }
  if (!outcome) throw new Error('a call without an admission request')
  const decision_trace = JSON.stringify(decisionOf(outcome, verstat))
  const call = keptCall(input, { decided: outcome, part })
  const position = insertCall(query, { ...call, decision_trace }, now_ms)
  return { position, part, ...settled(query, call.sid, outcome, now_ms) }
}

/** The call as it is kept: that of who refuses it. */
export const keptCall = (
  { call, callers }: AdmitInput,
  { decided, part }: { readonly decided: { readonly admitted: boolean }; readonly part: AdmissionRequest['part'] },
): NewCall => (callers && !decided.admitted && part !== 'inbound' ? callers : call)

export interface AdmitRowInput {
  readonly request: AdmissionRequest
  /** Refused for this, the call stays queued, for it passes by itself. */
  readonly waits_for: Reason | null
  readonly now_ms: number
}

/** The same for a call that has its row. */
export function admitRow(query: Query, { request, waits_for, now_ms }: AdmitRowInput): Settled {
  const outcome = take(query, { request, dry_run: false })
  if (!outcome.admitted && outcome.reason === waits_for) return { decided: withoutTrace(outcome), told: 0 }
  const changes = {
    decision_trace: JSON.stringify(decisionOf(outcome, null)),
    updated_at: new Date(now_ms).toISOString(),
  }
  changeCall(query, changes, request.call_sid)
  return settled(query, request.call_sid, outcome, now_ms)
}

type Settled = Pick<Admission, 'decided' | 'told'>

function settled(query: Query, sid: string, outcome: AdmissionOutcome, now_ms: number): Settled {
  const decided = withoutTrace(outcome)
  if (outcome.admitted) return { decided, told: 0 }
  const { code } = sipRefusal(outcome.reason, outcome.facts)
  const finished = finish(query, sid, {
    ending: ending({ cause: 'not_admitted', answered: false, sip_code: code, reason: outcome.reason }),
    ended_ms: now_ms,
    pdd_ms: null,
    media: null,
  })
  // One side may have been admitted before the other was refused.
  ceilings.release(query, { call_sid: sid, duration_seconds: 0, answered: false, now_ms })
  return { decided, told: finished?.told ?? 0 }
}

/** What a call keeps of its decision, admitted or not. */
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
