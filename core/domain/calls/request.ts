import type { Verstat } from '../identity/passport.ts'

/**
 * What a call was asked to do, as kept in `call.request` (JSON): written by the API for its calls and by signaling for
 * inbound and dialled ones. Fields that a kind of call does not have are absent or null.
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
  /** How an inbound call came by SIP: goes into the parameters of requests about it. */
  readonly sip?: SipOrigin | null
  readonly forwarded_from?: string | null
}

/** How a call came by SIP. */
export interface SipOrigin {
  readonly domain: string
  readonly username: string
  readonly call_id: string
  readonly source_ip: string
  /** Its X- headers. */
  readonly headers: Readonly<Record<string, string>>
  /** The caller asked that its number not be shown; absent when it did not. */
  readonly restricted?: true
  /** What the carrier's signature of the caller was worth; absent when none was looked for. */
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

/** Whether a call came from a caller who must not be shown: nobody that the call is sent on to is shown it either. */
export const hidesCaller = (json: string | null): boolean => readCallRequest(json).sip?.restricted === true

/** An unreadable value is an empty one: what a call was asked for must not keep it from ending. */
export function readCallRequest(json: string | null): CallRequest {
  if (json === null) return {}
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as CallRequest) : {}
  } catch {
    return {}
  }
}
