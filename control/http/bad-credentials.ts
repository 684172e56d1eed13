import type { IncomingMessage } from 'node:http'
import { addressGroup } from './address.ts'
import type { RateLimit, RateVerdict } from './rate-limit.ts'
import type { HttpServices } from './services.ts'

/** Limits requests with invalid credentials from one address, over all APIs. */
export const BAD_CREDENTIALS: RateLimit = { burst: 100, per_second: 1 }

/**
 * Counts a request with an invalid credential. Only such requests are limited: a client with a valid credential at the
 * same address is not.
 */
export const countBadCredential = (
  { bad_credentials, clock }: Pick<HttpServices, 'bad_credentials' | 'clock'>,
  request: IncomingMessage,
): RateVerdict | Promise<RateVerdict> => bad_credentials.take(addressGroup(request), clock.monotonic_ms(), clock.now())
