import { type Reason, type ReasonFacts, sipRefusal, strangerAdvice } from '../../core/domain/reasons/index.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { Headers, InboundInvite } from '../drachtio/types.ts'

/** Refuses an INVITE before it becomes a call: counts it, logs it and answers with the reason. */
export function refuse(
  ctx: Pick<CallContext, 'metrics' | 'log'>,
  invite: InboundInvite,
  reason: Reason,
  facts: ReasonFacts = {},
  more: Headers = {},
): void {
  ctx.metrics.refusals.inc({ reason })
  const { code, headers } = sipRefusal(reason, facts)
  ctx.log.info({ reason, code, source: invite.source.address, sip_call_id: invite.call_id }, 'INVITE refused')
  invite.refuse(code, { headers: { ...headers, ...more } })
}

/**
 * Refuses an unknown peer's INVITE without a log line. Over UDP the response is no larger than the INVITE (threats
 * §2.4); over a connection it says what to do.
 */
export function refuseStranger(ctx: Pick<CallContext, 'metrics'>, invite: InboundInvite): void {
  ctx.metrics.refusals.inc({ reason: 'source_not_allowed' })
  const { address, transport } = invite.source
  invite.refuse(403, transport === 'udp' ? {} : { headers: strangerAdvice(address) })
}
