import type { IncomingMessage } from 'node:http'
import { addressGroup } from './address.ts'
import type { RateLimit, RateVerdict } from './rate-limit.ts'
import type { HttpServices } from './services.ts'

/** Requests from one address whose credential is not good, over all APIs. */
export const BAD_CREDENTIALS: RateLimit = { burst: 100, per_second: 1 }

/**
 * Counts a request whose credential is not good. Whoever has a good one is not bounded by it, though of the same
 * address.
 */
export const countBadCredential = (
  { bad_credentials, clock }: Pick<HttpServices, 'bad_credentials' | 'clock'>,
  request: IncomingMessage,
): RateVerdict => bad_credentials.take(addressGroup(request), clock.monotonic_ms(), clock.now())
