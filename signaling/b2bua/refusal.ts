import { sipRefusal } from '../../core/domain/reasons/index.ts'
import type { BodyReading } from '../../core/domain/sip/body.ts'
import { MediaRefusal } from './media.ts'

/** Returns the SIP code for a request that the media worker refused. */
export const refusalCode = (error: unknown): number =>
  error instanceof MediaRefusal
    ? error.reason === 'media_unavailable' || error.reason === 'internal'
      ? 503
      : 488
    : 500

/**
 * Returns the SIP code of a call whose 2xx has an SDP that the media worker refused. A rejected audio line is an answer
 * (RFC 3264 §6), so the callee has refused the call. Any other refusal is of a response that is not valid (RFC 3261
 * §21.5.3): the caller's own offer was right. Null: the fault is ours.
 */
export function answerCode(error: unknown): 488 | 502 | null {
  if (!(error instanceof MediaRefusal) || refusalCode(error) === 503) return null
  return error.reason === 'audio_refused' ? 488 : 502
}

export const warning = (error: unknown): Record<string, string> =>
  error instanceof MediaRefusal
    ? {
        Warning: `399 strowger "${`${error.reason}: ${error.detail}`.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?')}"`,
      }
    : {}

/** Returns the headers of the 415 to a request whose body we cannot read (RFC 3261 §8.2.3). */
export const refusedBody = ({ value, headers }: NonNullable<BodyReading['refused']>): Record<string, string> => ({
  ...sipRefusal('body_unsupported', { value }).headers,
  ...headers,
})
