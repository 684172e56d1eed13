import { type Reason, type ReasonFacts, sipRefusal } from '../../core/domain/reasons/index.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { InboundInvite } from '../drachtio/types.ts'

/** Refuses an INVITE that becomes no call: counted, logged and answered with the reason. */
export function refuse(
  ctx: Pick<CallContext, 'metrics' | 'log'>,
  invite: InboundInvite,
  reason: Reason,
  facts: ReasonFacts = {},
): void {
  ctx.metrics.refusals.inc({ reason })
  const { code, headers } = sipRefusal(reason, facts)
  ctx.log.info({ reason, code, source: invite.source.address, sip_call_id: invite.call_id }, 'INVITE refused')
  invite.refuse(code, { headers })
}

/** Strangers cost no log line, and the answer is no larger than their INVITE (threats §2.4). */
export function refuseStranger(ctx: Pick<CallContext, 'metrics'>, invite: InboundInvite): void {
  ctx.metrics.refusals.inc({ reason: 'source_not_allowed' })
  invite.refuse(403)
}
