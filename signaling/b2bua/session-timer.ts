import type { SipRequest } from '../drachtio/types.ts'

/**
 * Session timers (RFC 4028), the part that is negotiation: the SIP server keeps the clocks and refreshes by what the
 * headers of the 2xx say.
 */

const SESSION_SECONDS = 1800
const MIN_SE_SECONDS = 90

interface SessionExpires {
  readonly seconds: number
  readonly refresher: 'uac' | 'uas' | null
}

export function readSessionExpires(value: string | null): SessionExpires | null {
  const match = /^\s*(\d{1,9})\s*((?:;[^;]*)*)$/.exec(value ?? '')
  if (!match) return null
  const refresher = /;\s*refresher\s*=\s*(uac|uas)\b/i.exec(match[2] ?? '')?.[1]?.toLowerCase()
  return { seconds: Number(match[1]), refresher: refresher === 'uac' || refresher === 'uas' ? refresher : null }
}

export const supports = (value: string | null, option: string): boolean =>
  (value ?? '').split(',').some(token => token.trim().toLowerCase() === option)

/** An interval below our least: the answer is 422 with this Min-SE (RFC 4028 §6). Null when it is fine. */
export function intervalTooSmall(request: SipRequest): string | null {
  const wanted = readSessionExpires(header(request, 'session-expires', 'x'))
  return wanted && wanted.seconds < MIN_SE_SECONDS && supports(header(request, 'supported', 'k'), 'timer')
    ? String(MIN_SE_SECONDS)
    : null
}

/**
 * Headers of our 2xx (RFC 4028 §9): the refresher that the request chose stays; when it chose none the caller
 * refreshes. A peer without the extension is told nothing, and no refresh of ours troubles it: silence on the line and
 * the limits of the call end what a vanished one has left.
 */
export function answerHeaders(request: SipRequest): Record<string, string> {
  const wanted = readSessionExpires(header(request, 'session-expires', 'x'))
  const able = supports(header(request, 'supported', 'k'), 'timer')
  if (!able) return {}
  const seconds = Math.max(MIN_SE_SECONDS, wanted?.seconds ?? SESSION_SECONDS)
  const refresher = wanted?.refresher ?? 'uac'
  return {
    'Session-Expires': `${seconds};refresher=${refresher}`,
    ...(refresher === 'uac' ? { Require: 'timer' } : {}),
  }
}

/** Headers of our INVITE (RFC 4028 §7.1). */
export const offerHeaders = (seconds = SESSION_SECONDS, min_se = MIN_SE_SECONDS): Record<string, string> => ({
  'Session-Expires': String(Math.max(seconds, min_se)),
  'Min-SE': String(min_se),
})

const header = (request: SipRequest, name: string, compact: string): string | null =>
  request.header(name) ?? request.header(compact)
