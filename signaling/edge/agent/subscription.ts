import { readSeconds, readToken } from '../../../core/domain/sip/values.ts'
import type { SipMessage } from '../sip/message.ts'
import type { AgentCore } from './core.ts'
import type { AgentLeg } from './leg.ts'

// The lifetime of a subscription (RFC 6665), on either side.

/** Starts the timer that drops a subscription 64×T1 after it expires without a refresh (RFC 6665 §4.1.2.4). */
export function subscribed(core: AgentCore, leg: AgentLeg, expires: string | undefined): void {
  const { wheel } = core.stack.transactions
  leg.expiry?.cancel()
  const seconds = readSeconds(expires) ?? 3_600
  leg.expiry = wheel.after(seconds * 1000 + core.patience_ms, () => core.dropLeg(leg))
}

/** Reports whether a request is the last NOTIFY of its subscription. */
export function endsSubscription(request: SipMessage): boolean {
  return request.method === 'NOTIFY' && readToken(request.get('subscription-state')) === 'terminated'
}
