import type { Verstat } from '../identity/passport.ts'
import type { Diverter } from '../sip/diversion.ts'

/**
 * The request of a call, stored as JSON in `call.request`. The API writes it for its calls, and signaling for inbound
 * and dialled ones. Fields that do not apply to a kind of call are absent or null.
 */
export interface CallRequest {
  readonly url?: string | null
  readonly method?: 'GET' | 'POST'
  readonly markup?: string | null
  readonly fallback_url?: string | null
  readonly fallback_method?: 'GET' | 'POST'
  readonly status_callback?: string | null
  readonly status_callback_method?: 'GET' | 'POST'
  readonly status_callback_events?: readonly string[]
  readonly timeout_seconds?: number | null
  readonly caller_id?: string | null
  readonly time_limit_seconds?: number | null
  readonly send_digits?: string | null
  readonly record?: RecordRequest | null
  readonly machine_detection?: Readonly<Record<string, unknown>> | null
  /** The conference to which the API adds the call. */
  readonly conference?: { readonly sid: string; readonly friendly_name: string }
  /** The SIP origin of an inbound call. Requests about the call have it as parameters. */
  readonly sip?: SipOrigin | null
  /** The number that the caller dialled first, of a call that was diverted to us. */
  readonly forwarded_from?: string | null
  /** Who diverted the call to us, the last one first; absent when nobody did. */
  readonly diverters?: readonly Diverter[]
  /** The caller's display name as it came; absent when there is none or the caller withholds the number. */
  readonly caller_name?: string
  /** The caller withholds the number; otherwise absent. */
  readonly restricted?: true
  /** Max-Forwards of the INVITE that made the call; absent in a call of the API. */
  readonly max_forwards?: number
}

/** The SIP facts of an inbound call. */
export interface SipOrigin {
  readonly domain: string
  readonly username: string
  readonly call_id: string
  readonly source_ip: string
  /** Its X- headers, User-to-User, Diversion and Geolocation. */
  readonly headers: Readonly<Record<string, string>>
  /** The caller's location, an XML document (RFC 5491, RFC 6442); absent when the INVITE has none. */
  readonly pidf_lo?: string
  /** As `CallRequest.restricted`, in rows of earlier versions. */
  readonly restricted?: true
  /** The verification result of the carrier's signature of the caller; absent when none was checked. */
  readonly verstat?: Verstat | null
}

export interface RecordRequest {
  readonly channels?: 'mono' | 'dual' | 1 | 2
  readonly track?: 'inbound' | 'outbound' | 'both'
  readonly trim?: boolean | string
  readonly status_callback?: string | null
  readonly status_callback_method?: 'GET' | 'POST'
  readonly status_callback_events?: readonly string[]
}

/** Reports whether the caller withholds the number. It stays hidden wherever the call is sent on. */
export function hidesCaller(json: string | null): boolean {
  const { restricted, sip } = readCallRequest(json)
  return restricted === true || sip?.restricted === true
}

/** RFC 3261 §8.1.1.6. */
const HOPS_OF_OUR_OWN = 70

/**
 * Returns Max-Forwards of an INVITE that a call leads to, by its document or a transfer (RFC 7332): one less than the
 * call's, so that calls which bring each other about come to an end. At 0 there is no such call.
 */
export function hopsLeft(json: string | null): number {
  const { max_forwards } = readCallRequest(json)
  return max_forwards === undefined ? HOPS_OF_OUR_OWN : max_forwards - 1
}

/** Parses a stored request. An unreadable one counts as empty, so that it cannot keep a call from ending. */
export function readCallRequest(json: string | null): CallRequest {
  if (json === null) return {}
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as CallRequest) : {}
  } catch {
    return {}
  }
}
