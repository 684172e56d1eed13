import { STATUS_CODES } from 'node:http'
import { REASONS, type Reason, type ReasonFacts, voiceErrorOf } from '../../core/domain/reasons/index.ts'

/**
 * A refused request of the voice-calls API: a numbered error in the API's format, or one of its two problem documents.
 */
export type VoiceRefusal =
  | {
      readonly kind: 'numbered'
      readonly code: number
      readonly status: number
      readonly message: string
      readonly details?: Readonly<Record<string, unknown>>
      readonly headers?: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'problem'
      readonly reason: 'unauthenticated' | 'voice_route_not_proxied'
      readonly detail: string
      readonly headers?: Readonly<Record<string, string>>
    }

/** The HTTP status of each number that this API's code refuses with directly (voice-compat.md section 15). */
export const NUMBERS = {
  12100: 400,
  13214: 400,
  13216: 400,
  16024: 400,
  16025: 400,
  20001: 400,
  20003: 401,
  20004: 405,
  20403: 403,
  20404: 404,
  20413: 413,
  20422: 415,
  20429: 429,
  20500: 500,
  20503: 503,
  21201: 400,
  21205: 400,
  21206: 400,
  21208: 400,
  21210: 400,
  21211: 400,
  21212: 400,
  21213: 400,
  21220: 400,
  21234: 400,
  21481: 400,
  21605: 400,
} as const

export type VoiceNumber = keyof typeof NUMBERS

export const numbered = (
  code: VoiceNumber,
  message: string,
  more: {
    readonly details?: Readonly<Record<string, unknown>>
    readonly headers?: Readonly<Record<string, string>>
  } = {},
): VoiceRefusal => ({ kind: 'numbered', code, status: NUMBERS[code], message, ...more })

/** Returns the refusal for a reason of the platform. The table of reasons has its number and status. */
export const forReason = (reason: Reason, facts: ReasonFacts = {}): VoiceRefusal => {
  const { retry_after_seconds, ...error } = voiceErrorOf(reason, facts)
  const headers = retry_after_seconds === null ? {} : { headers: { 'Retry-After': String(retry_after_seconds) } }
  return { kind: 'numbered', ...error, ...headers }
}

export const notProxied = (detail: string): VoiceRefusal => ({
  kind: 'problem',
  reason: 'voice_route_not_proxied',
  detail,
})

export const isVoiceRefusal = (value: unknown): value is VoiceRefusal =>
  typeof value === 'object' &&
  value !== null &&
  'kind' in value &&
  (value.kind === 'numbered' || value.kind === 'problem')

/** Returns the body of a refusal. Problem documents also have `message` and `more_info` for the stock library. */
export function voiceErrorBody(
  refusal: VoiceRefusal,
  context: { readonly base_url: string; readonly request_id: string },
): { readonly status: number; readonly type: string; readonly body: object } {
  if (refusal.kind === 'numbered') {
    const { code, message, status, details } = refusal
    const more_info = `${context.base_url}/docs/errors/${code}`
    return {
      status,
      type: 'application/json; charset=utf-8',
      body: { code, message, more_info, status, ...(details ? { details } : {}) },
    }
  }
  const status = REASONS[refusal.reason].http ?? 404
  const type = `${context.base_url}/docs/errors/${refusal.reason}`
  const { detail } = refusal
  const body = {
    type,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    code: refusal.reason,
    request_id: context.request_id,
    message: detail,
    more_info: type,
  }
  return { status, type: 'application/problem+json', body }
}
