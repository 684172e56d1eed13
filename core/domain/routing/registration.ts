import { readAddresses, readUri, type SipAddress } from '../sip/address.ts'
import { readSeconds } from '../sip/values.ts'

/** Decides when to register again with a carrier (RFC 3261 §10.2.4). Pure, so that a table can test every case. */

export interface RegistrationAnswer {
  /** 0 when the registrar did not answer. */
  readonly code: number
  /** The lifetime that the registrar granted our contact; null when it does not state one. */
  readonly granted_seconds: number | null
  /** Min-Expires of a 423. */
  readonly min_seconds: number | null
  readonly retry_after_seconds: number | null
}

type RegistrationStep =
  | { readonly state: 'registered'; readonly expires_in_seconds: number; readonly again_in_seconds: number }
  /** Retry immediately with a longer lifetime. */
  | { readonly state: 'registering'; readonly wanted_seconds: number }
  | { readonly state: 'failed'; readonly again_in_seconds: number }

const FIRST_PAUSE_SECONDS = 5
const LONGEST_PAUSE_SECONDS = 300
/** Registrars lock out clients that retry rejected credentials too often. */
const REFUSED_PAUSE_SECONDS = 60
const LONGEST_LIFE_SECONDS = 86_400

/**
 * Returns the next step after an answer. `failures` counts the consecutive failures before it. `random` in [0, 1) adds
 * jitter, so that many trunks of one carrier do not retry in the same second.
 */
export function nextRegistration(
  answer: RegistrationAnswer,
  facts: { readonly wanted_seconds: number; readonly failures: number; readonly random: number },
): RegistrationStep {
  const { code, granted_seconds, min_seconds, retry_after_seconds } = answer
  const { wanted_seconds, failures, random } = facts
  if (code >= 200 && code < 300) {
    const expires_in_seconds = Math.max(1, Math.min(granted_seconds ?? wanted_seconds, LONGEST_LIFE_SECONDS))
    // Leaves time for two failed attempts before the expiry. Refreshes at most once per second.
    const again_in_seconds = Math.max(1, Math.floor(expires_in_seconds * (0.7 + 0.1 * random)))
    return { state: 'registered', expires_in_seconds, again_in_seconds }
  }
  if (code === 423 && min_seconds !== null && min_seconds > wanted_seconds && min_seconds <= LONGEST_LIFE_SECONDS)
    return { state: 'registering', wanted_seconds: min_seconds }
  const refused = code === 401 || code === 403 || code === 404 || code === 407
  const first = refused ? REFUSED_PAUSE_SECONDS : FIRST_PAUSE_SECONDS
  const pause = Math.min(LONGEST_PAUSE_SECONDS, first * 2 ** Math.min(failures, 10))
  const spread = pause * (0.75 + 0.5 * random)
  const told = Math.min(retry_after_seconds ?? 0, LONGEST_LIFE_SECONDS)
  return { state: 'failed', again_in_seconds: Math.max(told, spread) }
}

/**
 * Returns the lifetime in seconds that a 200 grants our contact, from Contact or Expires; null without either. A
 * registrar lists all contacts of the user, also one from before a move of ours. It may know ours by another address,
 * that of a NAT. Of several candidates, the one that ends first is sure to be renewed in time; 0 is one that has ended.
 */
export function grantedSeconds(contact: string | null, expires: string | null, own_uri: string): number | null {
  const own = readUri(own_uri)
  const user = own?.user.toLowerCase()
  const of_user = readAddresses(contact).filter(one => one.user.toLowerCase() === user)
  const at_us = own ? of_user.filter(one => placeOf(one) === placeOf(own)) : []
  const lives = (at_us.length > 0 ? at_us : of_user).flatMap(one => readSeconds(one.params.get('expires')) ?? [])
  const running = lives.filter(seconds => seconds > 0)
  return running.length > 0 ? Math.min(...running) : (lives[0] ?? readSeconds(expires))
}

const placeOf = ({ host, port = 5060 }: SipAddress): string => `${host.toLowerCase()}:${port}`
