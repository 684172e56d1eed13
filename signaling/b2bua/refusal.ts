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
