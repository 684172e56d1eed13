import { hasToken, readSeconds, readSessionExpires } from '../../core/domain/sip/values.ts'
import type { SipRequest } from '../drachtio/types.ts'

/**
 * The negotiation of session timers (RFC 4028). The SIP server ends a session that is not refreshed; session-refresh.ts
 * refreshes it when that is ours to do.
 */

const SESSION_SECONDS = 1800
const MIN_SE_SECONDS = 90

/** Returns the Min-SE for a 422 when the requested interval is below our minimum (RFC 4028 §6); otherwise null. */
export function intervalTooSmall(request: SipRequest): string | null {
  const wanted = readSessionExpires(header(request, 'session-expires', 'x'))
  return wanted && wanted.seconds < MIN_SE_SECONDS && hasToken(header(request, 'supported', 'k'), 'timer')
    ? String(MIN_SE_SECONDS)
    : null
}

/**
 * Returns the headers of our 2xx (RFC 4028 §9). The request's choice of refresher stands; without one the caller
 * refreshes. A peer without the extension gets no timer, and we send it no refreshes: if it vanishes, the silence
 * timeout or the call's limits end the call.
 */
export function answerHeaders(request: SipRequest): Record<string, string> {
  const wanted = readSessionExpires(header(request, 'session-expires', 'x'))
  const able = hasToken(header(request, 'supported', 'k'), 'timer')
  if (!able) return {}
  // A proxy on the way may have raised the least interval above what we would choose.
  const least = Math.max(MIN_SE_SECONDS, readSeconds(request.header('min-se')) ?? 0)
  const seconds = Math.max(least, wanted?.seconds ?? SESSION_SECONDS)
  const refresher = wanted?.refresher ?? 'uac'
  return {
    'Session-Expires': `${seconds};refresher=${refresher}`,
    ...(refresher === 'uac' ? { Require: 'timer' } : {}),
  }
}

/** Returns the headers of our INVITE (RFC 4028 §7.1). */
export const offerHeaders = (seconds = SESSION_SECONDS, min_se = MIN_SE_SECONDS): Record<string, string> => ({
  'Session-Expires': String(Math.max(seconds, min_se)),
  'Min-SE': String(min_se),
})

/** Returns the headers of our refresh (RFC 4028 §7.4). */
export const refreshHeaders = (seconds: number, min_se: number): Record<string, string> => ({
  Supported: 'timer',
  'Session-Expires': `${seconds};refresher=uac`,
  'Min-SE': String(Math.max(MIN_SE_SECONDS, min_se)),
})

const header = (request: SipRequest, name: string, compact: string): string | null =>
  request.header(name) ?? request.header(compact)
