import { type Reason, type ReasonFacts, sipRefusal, strangerAdvice } from '../../core/domain/reasons/index.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { Headers, InboundInvite, ResponseOptions } from '../drachtio/types.ts'

/** Why an INVITE does not become a call. */
type Why =
  | {
      readonly kind: 'reason'
      readonly reason: Reason
      readonly facts: ReasonFacts
      /** Replaces the sentence of the reason. */
      readonly sentence?: string | undefined
      readonly headers?: Headers
      /** The sentence names limits, usage or the balance of a tenant that is not the peer's: the peer gets none. */
      readonly untold?: boolean
      /** The call that was stored and ended. */
      readonly call?: { readonly sid: string; readonly trunk_id: string | null }
    }
  /** A rule of SIP itself, without a reason of ours. */
  | { readonly kind: 'sip'; readonly code: number; readonly headers?: Headers }
  | { readonly kind: 'challenge'; readonly challenges: NonNullable<ResponseOptions['challenges']> }
  | { readonly kind: 'stranger' }

/** A step's finding that an INVITE does not become a call. `answerRefused` answers it. */
export class InviteRefused {
  readonly why: Why
  constructor(why: Why) {
    this.why = why
  }
}

export const refusedFor = (
  reason: Reason,
  facts: ReasonFacts = {},
  more: Pick<Extract<Why, { kind: 'reason' }>, 'sentence' | 'headers' | 'untold' | 'call'> = {},
): InviteRefused => new InviteRefused({ kind: 'reason', reason, facts, ...more })

/**
 * Counts, logs and answers an INVITE that does not become a call. A stranger's costs no log line (threats §2.4): over
 * UDP the response is no larger than the INVITE, over a connection it says what to do.
 */
export function answerRefused(
  { metrics, log }: Pick<CallContext, 'metrics' | 'log'>,
  invite: InboundInvite,
  { why }: InviteRefused,
): void {
  const { address, transport } = invite.source
  if (why.kind === 'challenge') {
    invite.refuse(401, { challenges: why.challenges })
    return
  }
  metrics.refusals.inc({ reason: countedAs(why) })
  if (why.kind === 'stranger') {
    invite.refuse(403, transport === 'udp' ? {} : { headers: strangerAdvice(address) })
    return
  }
  const { code, headers } = responseOf(why)
  const call = why.kind === 'reason' ? why.call : undefined
  const facts = {
    ...(why.kind === 'reason' ? { reason: why.reason } : {}),
    code,
    source: address,
    sip_call_id: invite.call_id,
    ...(call ? { call_id: call.sid, trunk_id: call.trunk_id } : {}),
  }
  log.info(facts, call ? 'call not admitted' : 'INVITE refused')
  invite.refuse(code, { headers })
}

const countedAs = (why: Exclude<Why, { kind: 'challenge' }>): string =>
  why.kind === 'reason' ? why.reason : why.kind === 'sip' ? `sip_${why.code}` : 'source_not_allowed'

function responseOf(why: Extract<Why, { kind: 'reason' | 'sip' }>): {
  readonly code: number
  readonly headers: Headers
} {
  if (why.kind === 'sip') return { code: why.code, headers: why.headers ?? {} }
  const { code, headers } = sipRefusal(why.reason, why.facts, why.sentence)
  const { Warning, ...others } = headers
  return { code, headers: { ...(why.untold ? others : headers), ...why.headers } }
}
